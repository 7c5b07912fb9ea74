"""Audio files to 16 kHz mono. Everything libsndfile reads: WAV, FLAC, Ogg (Vorbis, Opus), MP3, AIFF and more."""

from __future__ import annotations

import io

import av
import numpy as np
import soundfile

from wire.errors import PeerError
from wire.listen import SAMPLE_RATE_HZ
from wire.pcm import Pcm16

MAX_FILE_S = 1800.0  # 58 MB of samples here; a small file of silence may unpack to hours
BLOCK_FRAMES = 48000
MIN_RATE_HZ = 4000  # below it nothing is speech, and resampling a block would multiply it without bound


def decode(data: bytes) -> Pcm16:
    """The channels' mean, resampled.

    Raises: PeerError when it is no audio file, holds no audio, or more than `MAX_FILE_S`.
    """
    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)
    parts: list[Pcm16] = []
    num_samples = 0
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            if file.samplerate < MIN_RATE_HZ:
                raise PeerError(f"sample rate {file.samplerate} Hz; at least {MIN_RATE_HZ}", code="bad_audio")
            for block in file.blocks(blocksize=BLOCK_FRAMES, dtype="float32", always_2d=True):
                mono = np.ascontiguousarray(np.nan_to_num(block.mean(axis=1, dtype=np.float32))[np.newaxis])
                frame = av.AudioFrame.from_ndarray(mono, format="flt", layout="mono")
                frame.sample_rate = file.samplerate
                resampled = [out.to_ndarray()[0] for out in resampler.resample(frame)]
                num_samples += sum(part.size for part in resampled)
                parts += resampled
                if num_samples > MAX_FILE_S * SAMPLE_RATE_HZ:
                    raise PeerError(f"the file holds more than {MAX_FILE_S:.0f} s of audio", code="too_long")
    except soundfile.LibsndfileError as error:
        raise PeerError(f"cannot read the file as audio: {error.error_string}", code="bad_audio") from None
    except (soundfile.SoundFileError, av.FFmpegError, ValueError) as error:
        raise PeerError(f"cannot read the file as audio: {error}", code="bad_audio") from None
    if not parts:
        raise PeerError("the file holds no audio", code="bad_audio")
    parts += [out.to_ndarray()[0] for out in resampler.resample(None)]
    return np.concatenate(parts)
