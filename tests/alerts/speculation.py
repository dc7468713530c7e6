"""Cases of alerts about speculation and quantization. One sample in 15 s: 4 are a minute, 40 ten."""

from collections.abc import Mapping

from tests.alerts.rules import Case, Fires

_DECODE = 'engine="decode-0",role="decode",rank="0",model="m"'
_DRAFTED = f"duet_engine_draft_tokens_total{{{_DECODE}}}"
_ACCEPTED = f"duet_engine_accepted_tokens_total{{{_DECODE}}}"
_SECONDS = f"duet_engine_tpot_seconds_sum{{{_DECODE}}}"
_COUNT = f"duet_engine_tpot_seconds_count{{{_DECODE}}}"
_AGREEMENT = 'duet_reference_agreement{engine="decode-0"}'
_MEASURED = {"tpot_without_speculation": 0.03}


def _low(share: str) -> Fires:
    return Fires(
        {"engine": "decode-0"},
        f"decode-0 accepts few drafts: {share}",
        f"Of the draft tokens of decode-0 {share} are accepted; less than 40% is too little for this draft.",
    )


def _below(share: str) -> Fires:
    return Fires(
        {"engine": "decode-0"},
        f"Speculation of decode-0 is below break-even: {share} accepted",
        f"Of the draft tokens of decode-0 {share} are accepted; below 50% it is expected to cost more than it saves.",
    )


_SLOWER = Fires(
    {"engine": "decode-0"},
    "Speculation slows decode-0 down: 40ms by token",
    "decode-0 takes 40ms by output token with speculation; without, 30ms was measured.",
)
_RATIO = 'duet_quantization_drift_ratio{model="small-int8"}'
_PSI = 'duet_quantization_length_psi{model="small-int8"}'


def _changed(words: str, lengths: str) -> Fires:
    return Fires(
        {"model": "small-int8"},
        "Prompts to small-int8 are not like those it was calibrated with",
        f"Words differ {words} times as much as chance explains (1 is the limit), the index of lengths is {lengths} "
        "(above 0.25 they are much different).",
    )


_DRIFT = Fires(
    {"engine": "decode-0"},
    "decode-0 answers otherwise than its reference: 85% agree",
    "Of the tokens of the reference answers decode-0 gives 85% likewise; at least 90% should be.",
)


def _acceptance(fires: Fires, near: int, lower: float, threshold: str) -> tuple[Case, ...]:
    return (
        Case("30 of 100", {_DRAFTED: "0+100x160", _ACCEPTED: "0+30x160"}, "30m", (fires,)),
        Case(
            "started anew meanwhile", {_DRAFTED: "0+100x60 0+100x100", _ACCEPTED: "0+30x60 0+30x100"}, "36m", (fires,)
        ),
        Case("just enough", {_DRAFTED: "0+100x160", _ACCEPTED: f"0+{near}x160"}, "30m"),
        Case("not yet for long", {_DRAFTED: "0+100x160", _ACCEPTED: "0+30x160"}, "9m"),
        Case("too few drafts to tell", {_DRAFTED: "0+2x160", _ACCEPTED: "0x160"}, "30m"),
        Case("no traffic", {_DRAFTED: "500x160", _ACCEPTED: "5x160"}, "30m"),
        Case("no speculation", {_SECONDS: "0+4x160", _COUNT: "0+100x160"}, "30m"),
        Case(
            "less is meant here", {_DRAFTED: "0+100x160", _ACCEPTED: "0+30x160"}, "30m", thresholds={threshold: lower}
        ),
    )


CASES: Mapping[str, tuple[Case, ...]] = {
    "DuetAcceptanceLow": _acceptance(_low("30%"), 41, 0.2, "acceptance"),
    "DuetAcceptanceBelowBreakEven": _acceptance(_below("30%"), 51, 0.2, "break_even"),
    "DuetSpeculationNetNegative": (
        Case(
            "slower than measured without",
            {_DRAFTED: "0+100x160", _SECONDS: "0+4x160", _COUNT: "0+100x160"},
            "25m",
            (_SLOWER,),
            thresholds=_MEASURED,
        ),
        Case("not measured without", {_DRAFTED: "0+100x160", _SECONDS: "0+4x160", _COUNT: "0+100x160"}, "25m"),
        Case(
            "just not slower",
            {_DRAFTED: "0+100x160", _SECONDS: "0+2.9x160", _COUNT: "0+100x160"},
            "25m",
            thresholds=_MEASURED,
        ),
        Case("slow without drafts", {_SECONDS: "0+4x160", _COUNT: "0+100x160"}, "25m", thresholds=_MEASURED),
        Case("no traffic", {_DRAFTED: "9000x160", _SECONDS: "4x160", _COUNT: "100x160"}, "25m", thresholds=_MEASURED),
        Case(
            "prefill, of whose one token nothing can be said",
            {
                _DRAFTED.replace("decode", "prefill"): "0+100x160",
                _SECONDS.replace("decode", "prefill"): "0+4x160",
                _COUNT.replace("decode", "prefill"): "0+100x160",
            },
            "25m",
            thresholds=_MEASURED,
        ),
    ),
    "DuetQuantizationDrift": (
        Case("85 of 100", {_AGREEMENT: "0.95x20 0.85x60"}, "12m", (_DRIFT,)),
        Case("just enough", {_AGREEMENT: "0.9x80"}, "12m"),
        Case("once", {_AGREEMENT: "0.95x20 0.85x10 0.95x60"}, "9m"),
        Case("no references", {_DRAFTED: "0+1x80"}, "12m"),
        Case("less is meant here", {_AGREEMENT: "0.85x80"}, "12m", thresholds={"reference_agreement": 0.8}),
    ),
    "DuetCalibrationDrift": (
        Case("other words", {_RATIO: "0.9x20 1.24x60", _PSI: "0.03x80"}, "12m", (_changed("1.24", "0.03"),)),
        Case("other lengths", {_RATIO: "0.95x80", _PSI: "0.31x80"}, "12m", (_changed("0.95", "0.31"),)),
        Case("both", {_RATIO: "1.7x80", _PSI: "0.5x80"}, "12m", (_changed("1.70", "0.50"),)),
        Case("just not", {_RATIO: "1x80", _PSI: "0.25x80"}, "12m"),
        Case("too few records to tell", {'duet_quantization_live_records{model="small-int8"}': "20x80"}, "12m"),
    ),
}
