"""Options of the speech detectors."""

from typing import Self

from pydantic import Field, model_validator

from oasr.interfaces.component import ComponentConfig


class EnergyConfig(ComponentConfig):
    """Speech by its loudness over the noise around it. Loudness is that of one frame, in dB below full scale."""

    frame_seconds: float = Field(0.02, ge=0.005, le=0.1)
    """Length of a frame, of which each is speech or not."""
    start_decibels: float = Field(7.0, gt=0)
    """Speech starts with a frame that is so much louder than the noise."""
    end_decibels: float = Field(4.0, ge=0)
    """Speech goes on until a frame is less than so much louder than the noise."""
    noise_seconds: float = Field(20.0, ge=1)
    """The noise is measured in the frames of so many seconds before."""
    noise_quantile: float = Field(0.05, ge=0, le=0.5)
    """So large a part of these frames is taken for noise, and the loudest of that part is its loudness."""
    lead_seconds: float = Field(1.0, ge=0.1)
    """A stream is heard so long before the first decision, for which there is no audio before."""
    silence_decibels: float = Field(-70.0, le=0)
    """The noise counts as at least this loud, however quiet it is."""
    least_speech_seconds: float = Field(0.1, ge=0)
    """Sounds with less speech in them are left out, such as clicks."""
    least_pause_seconds: float = Field(0.5, gt=0)
    """Shorter pauses are part of the speech."""
    padding_seconds: float = Field(0.2, ge=0)
    """Added at both ends of speech, for soft sounds; at most half the shortest pause."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.padding_seconds > self.least_pause_seconds / 2:
            raise ValueError("padding_seconds is more than half of least_pause_seconds, so stretches would overlap")
        if self.end_decibels > self.start_decibels:
            raise ValueError("end_decibels is more than start_decibels, so speech would end where it starts")
        if self.lead_seconds > self.noise_seconds:
            raise ValueError("lead_seconds is more than noise_seconds")
        return self
