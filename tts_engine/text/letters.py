"""Letter-to-sound rules for words no lexicon has: names, brands, typing errors. Pure.

Of the rules that fit, the one with the longest spelling is taken, then the one with more context, left to right. The
sounds are those of the lexicon's alphabet. English spelling is not regular; this aims at what a reader would say who
meets the word for the first time.
"""

from __future__ import annotations

import re
from collections import defaultdict

# before(spelling)after=sound. Context: ^ and $ are the ends of the word, C is a consonant, V a vowel, E one of e i y.
_RULES_TEXT = """
^(kn)=n ^(gn)=n ^(pn)=n ^(ps)=s ^(pt)=t ^(wr)=ɹ ^(x)=z ^(rh)=ɹ ^(mc)=mək ^(wh)=w ^(sch)=ʃ
(tch)=ʧ (ch)=ʧ (sch)=sk (sh)=ʃ (ssion)=ʃən V(sion)=ʒən (sion)=ʃən (tion)=ʃən (cian)=ʃən (tious)=ʃəs (cious)=ʃəs
(tial)=ʃəl (cial)=ʃəl (ture)$=ʧəɹ (sure)$=ʒəɹ (th)=θ (ph)=f (gh)$= (ght)=t (gh)=ɡ (ck)=k (qu)=kw (que)$=k (q)=k (x)=ks
(ng)$=ŋ (ng)C=ŋɡ (nk)=ŋk (mb)$=m (mn)$=m (bt)$=t (dge)=ʤ (dg)=ʤ (sc)E=s (cc)E=ks (c)E=s (c)=k (cc)=k
(gg)=ɡ (gu)E=ɡ (g)E=ʤ (g)=ɡ (j)=ʤ (h)=h (w)=w (bb)=b (dd)=d (ff)=f (kk)=k (ll)=l (mm)=m (nn)=n (pp)=p (rr)=ɹ
(ss)=s (tt)=t (vv)=v (zz)=z (zh)=ʒ (b)=b (d)=d (f)=f (k)=k (l)=l (m)=m (n)=n (p)=p (r)=ɹ V(s)V=z (s)=s (t)=t (v)=v (z)=z
(aigh)=A (eigh)=A (igh)=I (ough)=O (augh)=ɔ (air)=ɛɹ (are)$=ɛɹ (ear)=ɪɹ (eer)=ɪɹ (oar)=ɔɹ (oor)=ɔɹ (our)=ɔɹ (ore)$=ɔɹ
(ire)$=Iəɹ (ure)$=jʊɹ (ar)V=ɛɹ (ar)=ɑɹ (er)V=ɛɹ (er)=əɹ ^C(er)=ɜɹ (ir)V=ɪɹ (ir)=ɜɹ (or)=ɔɹ (ur)V=ʊɹ (ur)=ɜɹ (yr)=ɪɹ
(ai)=A (ay)=A (au)=ɔ (aw)=ɔ (ea)=i (ee)=i (ei)=A (ey)$=i (ey)=A (eu)=ju (ew)=ju (ie)=i (oa)=O (oe)$=O (oi)=Y (oy)=Y
(oo)k=ʊ (oo)=u (ou)=W (ow)$=O (ow)=W (ue)$=u (ui)=u (ia)$=iə (io)$=iO (ius)$=iəs (ium)$=iəm (eo)=iO (aa)=ɑ (ae)=A
(all)$=ɔl (al)k=ɔ (wa)=wɑ (able)$=əbᵊl (ible)$=əbᵊl C(le)$=ᵊl (age)$=ɪʤ (ous)$=əs (ism)$=ɪzəm (ity)$=əɾi
(a)$=ə (e)$= (es)$=z (ed)$=d t(ed)$=ᵻd d(ed)$=ᵻd (i)$=i (o)$=O (u)$=u (y)$=i ^C(y)$=I ^CC(y)$=I (y)V=j (y)=ɪ
(a)Ce$=A (e)Ce$=i (i)Ce$=I (o)Ce$=O (u)Ce$=u (y)Ce$=I (a)CV=A (o)CV=O (u)CV=u ^(e)$=i
(a)=æ (e)=ɛ (i)=ɪ (o)=ɑ (u)=ʌ
"""
_CLASSES = {"C": "[bcdfghjklmnpqrstvwxz]", "V": "[aeiouy]", "E": "[eiy]", "^": r"\^", "$": r"\$"}
_VOWEL_SOUNDS = "AIOWYæɑɔɛɜɪiuʊʌ"


def _compile(text: str) -> dict[str, list[tuple[re.Pattern[str], int, str]]]:
    """Rules by the first letter of their spelling, the most specific first: pattern, letters consumed, sound."""
    ranked = defaultdict(list)
    for rule in text.split():
        match = re.fullmatch(r"([^(]*)\(([a-z]+)\)([^=]*)=(.*)", rule)
        assert match is not None, rule
        before, spelling, after, sound = match.groups()
        behind, ahead = (("".join(_CLASSES.get(c, c) for c in side)) for side in (before, after))
        pattern = re.compile(rf"(?<={behind}){spelling}(?={ahead})")
        ranked[spelling[0]].append((len(spelling), len(before + after), pattern, sound))
    return {
        letter: [(pattern, size, sound) for size, _, pattern, sound in sorted(rules, key=lambda r: r[:2], reverse=True)]
        for letter, rules in ranked.items()
    }


_RULES = _compile(_RULES_TEXT)


def pronounce(word: str) -> str:
    """Sounds of a word of the letters a to z; empty for none."""
    padded, at, sounds = f"^{word}$", 1, []
    while at <= len(word):
        for pattern, size, sound in _RULES.get(padded[at], ()):
            if pattern.match(padded, at):
                sounds.append(sound)
                at += size
                break
        else:
            at += 1
    return stress("".join(sounds))


def stress(sounds: str) -> str:
    """ˈ before the vowel that English prefers: the last but one of two, the last but two of more."""
    vowels = [i for i, c in enumerate(sounds) if c in _VOWEL_SOUNDS]
    if not vowels:
        return sounds
    at = vowels[max(0, len(vowels) - (2 if len(vowels) <= 2 else 3))]
    return f"{sounds[:at]}ˈ{sounds[at:]}"
