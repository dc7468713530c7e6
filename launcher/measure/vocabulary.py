"""Shape: real words of which made-up texts consist; changing one changes every workload."""

NOUNS = tuple(
    """
    river bridge market teacher garden engine winter letter mountain harbour village captain library kitchen window
    forest station doctor painter island shadow clock lantern bakery orchard railway valley museum sailor farmer
    candle blanket basket feather ladder mirror hammer pencil bottle carpet pillow bucket needle ribbon saddle anchor
    compass telescope notebook satellite battery magnet crystal glacier volcano desert meadow canyon waterfall lagoon
    sparrow falcon badger otter hedgehog salmon beetle spider dolphin walrus camel donkey rabbit squirrel beaver
    merchant soldier tailor miller shepherd hunter builder driver singer writer dancer baker judge mayor prince widow
    lemon cherry almond pepper garlic pumpkin barley honey butter cheese pancake biscuit coffee cinnamon walnut
    castle chapel tower tunnel cellar attic balcony fountain statue gallery theatre prison hospital factory cottage
    """.split()  # noqa: SIM905  # a list of a hundred quoted words is no better to read
)
ADJECTIVES = tuple(
    """
    quiet bright narrow ancient gentle hollow silver frozen distant curious broken golden wooden heavy patient
    crooked rapid pale careful hidden empty honest lonely modern noisy orange polite rough shallow steady tender
    useful velvet wicked yellow brave clever dusty eager faint grand humble idle jolly keen lazy mighty neat
    """.split()  # noqa: SIM905
)
VERBS = tuple(
    """
    carried followed painted repaired watched remembered crossed borrowed described measured discovered answered
    covered delivered emptied finished gathered ignored joined lifted mended noticed opened polished reached saved
    touched visited warned wrapped admired buried collected defended entered found guarded helped invited
    """.split()  # noqa: SIM905
)
PLACES = tuple("behind beside above under near beyond inside against around across".split())  # noqa: SIM905
TIMES = (
    "In the morning",
    "After the storm",
    "Late that night",
    "Years later",
    "On the second day",
    "Before the harvest",
    "During the long winter",
    "At the end of the road",
    "When the bells rang",
    "Without a word",
)
