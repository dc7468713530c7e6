"""Decision: what to say at the end, and what to do next."""

import shlex
from collections.abc import Iterator, Sequence

from launcher.quantize.gate.shape import Verdict
from launcher.quantize.outcome import Attempt, UnitScore
from launcher.quantize.request import Request
from launcher.quantize.scheme import Scheme, title


def verdict_of(attempts: Sequence[Attempt]) -> Verdict:
    """Of the last attempt; one that a guard refused has failed."""
    judgement = attempts[-1].judgement
    return Verdict.FAIL if judgement is None else judgement.verdict


def headline(verdict: Verdict, scheme: Scheme, attempts: Sequence[Attempt], baseline_size: int) -> str:
    """One sentence."""
    last = attempts[-1]
    how = f"{title(scheme)} by {last.algorithm}"
    smaller = f"{1 - last.size / baseline_size:.0%} smaller"
    if verdict is Verdict.PASS:
        return f"{how} passes: as good as the original within the limits, and {smaller}."
    if last.judgement is None:
        wrong = next(guard for guard in last.guards if not guard.is_ok)
        return f"{how} was not judged: {wrong.name}: {wrong.text}."
    reason = last.judgement.reasons[0].rstrip(".") if last.judgement.reasons else "no reason was given"
    if verdict is Verdict.FAIL:
        tried = f" after {len(attempts)} attempts" if attempts[1:] else ""
        return f"{how} fails{tried}: {reason}."
    return f"{how}: not shown to be as good as the original, nor to be worse: {reason}."


def next_steps(
    verdict: Verdict, request: Request, scheme: Scheme, attempts: Sequence[Attempt], sensitivity: Sequence[UnitScore]
) -> Iterator[str]:
    """Commands or sentences, the most useful first."""
    out, last = shlex.quote(str(request.out)), attempts[-1]
    if verdict is Verdict.PASS or request.publish_anyway:
        yield f"launcher check PROFILE --model {out}"
        yield f"launcher up PROFILE --model {out}"
        yield f"launcher quantize check {out} --live recent.jsonl   # weekly: is production still like the records?"
    if verdict is Verdict.PASS:
        return
    if last.judgement is None:
        yield "Do what the guard that failed says, and run the same command again: finished steps are kept."
        return
    if verdict is Verdict.INCONCLUSIVE:
        task = last.judgement.task
        if task is not None and task.needed > task.items:
            yield f"Give about {task.needed} items in --task, instead of {task.items}: then the verdict can be had."
        elif task is None:
            yield "Give a labelled task of yours (--task items.jsonl), or more records to hold out (--held-out)."
        yield "Finished steps are kept: only what is new is done again."
        return
    if scheme is Scheme.INT4:
        yield "Use --scheme int8 (fp8 on Ada, Hopper, Blackwell): four bits are too few for this model."
    if any(each.algorithm == "round to nearest" for each in attempts) and scheme is not Scheme.FP8:
        yield "Leave out --fast: calibration keeps more than rounding does."
    if sensitivity:
        worst = sensitivity[0]
        yield f"The most sensitive layer is {worst.name}: allow more attempts (--attempts {len(attempts) + 1})."
    yield "Use records that are more like your traffic, and more of them (--records, up to 1,024)."
    yield "Serve the original: no quantization is better than one that harms."
