"""Whether a profile is of what a boundary is about: the same system, versions, population, grader and rule.

Rule: any difference revokes; see ``evidence.changes``.
"""

from __future__ import annotations

from surefoot.processors.boundary.definition import Validity
from surefoot.processors.evidence.changes import Difference, between, maps
from surefoot.processors.evidence.profile import Profile


def differences_from(validity: Validity, profile: Profile) -> list[Difference]:
    """What of the profile's subject (``after``) is not what the boundary declares (``before``)."""
    contract = profile.outcome_contract
    declared = contract.model_copy(
        update={
            "grader_and_version": validity.grader_and_version,
            "outcome_equivalence_rule": validity.outcome_equivalence_rule,
        }
    )
    return [
        *between("system", validity.system, profile.system),
        *maps("versions", validity.versions, profile.evidence.versions),
        *between("task_population", validity.task_population, profile.task_population),
        *between("outcome_contract", declared, contract),
    ]
