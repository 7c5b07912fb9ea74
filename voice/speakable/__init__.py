"""What is sent to a voice: text in which every character can be spoken, and what of it was written. Pure.

    written      - **Total:** $3.50 (see [our site](https://example.com)) 😀
    spoken       Total: three dollars and fifty cents (see our site)

Markup goes in every language. Numbers, dates, addresses and abbreviations become words where `_READINGS` has the
language; else they are left to the voice, since number words that follow gender and case take a grammar.
"""

from voice.speakable.rewriting import Piece
from voice.speakable.speakable import Speakable, speakable

__all__ = ["Piece", "Speakable", "speakable"]
