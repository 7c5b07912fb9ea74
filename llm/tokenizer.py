"""Byte-level BPE built from a GGUF vocabulary, and the chat template. Knows no model.

Text of a conversation is never read as control tokens: a caller who says "<|im_end|>" says it, and ends nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import jinja2.sandbox
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from llm.checkpoint import Vocabulary
from wire.errors import PeerError, Unavailable

# Of a prompt, on the average: English has 4 to 5, indented code 8. Splitting 1 MB takes 1 to 5 seconds in which nobody
# else gets a token: the library holds Python's lock.
MAX_BYTES_PER_TOKEN = 16
_CONTROL_KINDS = (3, 4)  # GGUF token types: control, user defined
_EOS_NAMES = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>")  # end a turn whatever the vocabulary's own EOS is


class Tokenizer:
    def __init__(self, serialized: str, eos: Sequence[int], control: Mapping[str, int], chat_template: str) -> None:
        """Raises: Unavailable for a template that is none."""
        self._serialized = serialized
        self._inner = tokenizers.Tokenizer.from_str(serialized)
        self._control = dict(control)
        self._control_names = {token: text for text, token in control.items()}
        self._chat_template = chat_template
        self._control_text = re.compile("|".join(map(re.escape, sorted(control, key=len, reverse=True))) or "(?!)")
        self._template = _compile(chat_template)
        self.eos = frozenset(eos)
        self._bytes = self._table()

    def description(self) -> dict[str, Any]:
        """Arguments that make this tokenizer again."""
        return {
            "serialized": self._serialized,
            "eos": sorted(self.eos),
            "control": self._control,
            "chat_template": self._chat_template,
        }

    def encode(self, text: str, max_tokens: int | None = None) -> list[int]:
        """Control tokens in `text` become control tokens.

        Raises: PeerError for text so long that it cannot be meant for `max_tokens`. Shorter text may have more.
        """
        if max_tokens is not None and (num_bytes := len(text.encode())) > MAX_BYTES_PER_TOKEN * max_tokens:
            raise PeerError(f"{num_bytes} bytes of text exceed {max_tokens} tokens", code="context_length_exceeded")
        ids: list[int] = self._inner.encode(text, add_special_tokens=False).ids
        return ids

    def encode_chat(self, messages: Sequence[Mapping[str, str]], max_tokens: int | None = None) -> list[int]:
        """The prompt for the assistant's next message.

        Raises: PeerError when the template refuses the messages, and as `encode`.
        """
        try:
            text = self._template.render(
                messages=[{**m, "content": self._defused(m["content"])} for m in messages], add_generation_prompt=True
            )
        except jinja2.TemplateError as error:
            raise PeerError(f"messages: the model's chat template refuses them: {error}") from None
        return self.encode(text, max_tokens)

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(map(self.bytes_of, ids)).decode(errors="replace")

    def bytes_of(self, token: int) -> bytes:
        """What a token adds to the text; nothing for a control token."""
        return self._bytes[token]

    def name_of(self, token: int) -> str:
        """For people to read: its text, also of a control token; part of a character is a replacement character."""
        return self._control_names.get(token) or self.bytes_of(token).decode(errors="replace")

    def _defused(self, content: str) -> str:
        return self._control_text.sub(lambda found: f"{found[0][:1]} {found[0][1:]}", content)

    def _table(self) -> list[bytes]:
        to_byte = {symbol: byte for byte, symbol in _byte_symbols().items()}
        table = [b""] * self._inner.get_vocab_size()
        for text, token in self._inner.get_vocab().items():
            if text not in self._control:
                table[token] = bytes(to_byte[symbol] for symbol in text)
        return table


def build_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """Raises: Unavailable for a way of splitting text that is not known here, or a template that is none."""
    if vocabulary.pre != "smollm":
        raise Unavailable(f"pre-tokenizer '{vocabulary.pre}' is not supported, 'smollm' is")
    ids = {token: index for index, token in enumerate(vocabulary.tokens)}
    control = {
        token: index
        for index, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.kinds, strict=True))
        if kind in _CONTROL_KINDS
    }
    merges = [(left, right) for left, right in (merge.split(" ", 1) for merge in vocabulary.merges)]
    inner = tokenizers.Tokenizer(models.BPE(vocab=ids, merges=merges))
    # llama.cpp's "smollm": every digit alone, then GPT-2's expression.
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in control])
    eos = {vocabulary.eos, *(control[name] for name in _EOS_NAMES if name in control)}
    return Tokenizer(inner.to_str(), sorted(eos), control, vocabulary.chat_template)


def _compile(chat_template: str) -> jinja2.Template:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment.globals["raise_exception"] = raise_exception  # templates of the hub call it
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    try:
        return environment.from_string(chat_template)
    except jinja2.TemplateSyntaxError as error:
        raise Unavailable(f"the model's chat template cannot be read: {error}") from None


def _byte_symbols() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte: printable bytes stand for themselves, the rest for U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable}
    return symbols | {byte: chr(256 + index) for index, byte in enumerate(others)}
