"""What a person would find who looked at a run of this example."""


def acceptable(number: int) -> bool:
    """Whether run ``number`` left the refund as it should be: one task in 25 never does, and some runs do not."""
    task = number // 3
    return task % 25 != 7 and number % 41 != 3


def judged_acceptable(number: int) -> bool:
    """What the judge says: fooled by one kind of wrong refund, and wrong about a right one now and then."""
    if acceptable(number):
        return number % 37 != 5
    return number // 3 % 50 == 32
