"""Judge repetition: groups of repeated runs in, estimates with intervals, measured graders and a profile out."""
