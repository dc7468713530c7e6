"""The controller of speculation: keep, lower, raise, off, try again, back on; by tokens a second that are gained.

Decisions are pure: `observation` is what was seen, `knowledge` what is known of serving without, `decide` what follows.
`look` reads, `act` does, `journal` writes down why, `controller` is the loop.
"""
