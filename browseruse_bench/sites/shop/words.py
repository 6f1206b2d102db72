"""The words that the shop's goods, people and reviews are made of. All of it is invented."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of product: whole euros and grams as (low, high), and its one special figure."""

    name: str
    price: tuple[int, int]
    weight: tuple[int, int]
    spec: str
    values: tuple[str, ...]


class Category(NamedTuple):
    """A department of the shop with its five kinds of product."""

    slug: str
    name: str
    materials: tuple[str, ...]
    kinds: tuple[Kind, ...]


CATEGORIES = (
    Category(
        "kitchen",
        "Kitchen",
        ("Stainless steel", "Cast iron", "Glass", "Beech wood"),
        (
            Kind("Kettle", (19, 89), (700, 1900), "Capacity", ("1.0 l", "1.2 l", "1.5 l", "1.7 l")),
            Kind("Frying Pan", (15, 95), (800, 2200), "Diameter", ("20 cm", "24 cm", "28 cm")),
            Kind("Coffee Grinder", (25, 140), (500, 1600), "Grind settings", ("12", "18", "30")),
            Kind("Kitchen Scale", (12, 60), (300, 900), "Maximum load", ("3 kg", "5 kg", "8 kg")),
            Kind("Mixing Bowl", (9, 45), (300, 1400), "Capacity", ("1.5 l", "2.5 l", "3.5 l")),
        ),
    ),
    Category(
        "camping",
        "Camping",
        ("Ripstop nylon", "Aluminium", "Recycled polyester"),
        (
            Kind("Tent", (79, 390), (1600, 5200), "Sleeps", ("2 people", "3 people", "4 people")),
            Kind("Sleeping Bag", (45, 220), (800, 2100), "Comfort", ("-5 °C", "0 °C", "5 °C")),
            Kind("Camping Stove", (29, 120), (250, 1500), "Output", ("1.8 kW", "2.2 kW", "3.0 kW")),
            Kind("Lantern", (14, 65), (200, 800), "Burn time", ("12 h", "20 h", "36 h", "60 h")),
            Kind("Water Filter", (22, 90), (90, 600), "Flow rate", ("1 l/min", "2 l/min")),
        ),
    ),
    Category(
        "office",
        "Home Office",
        ("Bamboo", "Powder-coated steel", "Recycled plastic"),
        (
            Kind("Desk Lamp", (24, 130), (600, 2400), "Brightness", ("450 lm", "600 lm", "900 lm")),
            Kind("Office Chair", (95, 390), (9000, 18000), "Maximum load", ("110 kg", "130 kg")),
            Kind("Keyboard", (29, 160), (450, 1300), "Keys", ("61", "87", "104")),
            Kind("Monitor Arm", (35, 150), (1800, 4200), "Largest screen", ("27 in", "32 in")),
            Kind("Paper Shredder", (39, 190), (2800, 7800), "Sheets at once", ("6", "8", "12")),
        ),
    ),
    Category(
        "audio",
        "Audio",
        ("Walnut veneer", "Aluminium", "Recycled plastic"),
        (
            Kind("Headphones", (39, 290), (180, 340), "Battery life", ("18 h", "30 h", "45 h")),
            Kind("Speaker", (35, 240), (400, 2600), "Battery life", ("10 h", "16 h", "24 h")),
            Kind("Record Player", (89, 380), (2800, 6900), "Speeds", ("2", "3")),
            Kind("Clock Radio", (19, 95), (300, 1200), "Alarms", ("1", "2", "4")),
            Kind("Microphone", (45, 210), (300, 1100), "Cable length", ("1.5 m", "2 m", "3 m")),
        ),
    ),
    Category(
        "bags",
        "Bags",
        ("Waxed canvas", "Vegetable-tanned leather", "Recycled polyester"),
        (
            Kind("Backpack", (39, 190), (600, 1900), "Volume", ("18 l", "24 l", "32 l", "45 l")),
            Kind("Suitcase", (69, 320), (2200, 4900), "Volume", ("36 l", "62 l", "95 l")),
            Kind("Messenger Bag", (35, 160), (500, 1400), "Fits laptops", ("13 in", "15 in")),
            Kind("Toiletry Bag", (14, 60), (120, 420), "Compartments", ("2", "3", "5")),
            Kind("Umbrella", (12, 70), (250, 680), "Diameter", ("95 cm", "105 cm", "120 cm")),
        ),
    ),
    Category(
        "garden",
        "Garden",
        ("Galvanised steel", "Terracotta", "Ash wood"),
        (
            Kind("Watering Can", (12, 70), (400, 1900), "Capacity", ("5 l", "9 l", "12 l")),
            Kind("Garden Hose", (19, 110), (1500, 5200), "Length", ("10 m", "20 m", "30 m")),
            Kind("Plant Pot", (7, 80), (500, 6200), "Diameter", ("18 cm", "26 cm", "40 cm")),
            Kind("Hedge Shears", (19, 95), (600, 1500), "Blade length", ("20 cm", "25 cm")),
            Kind("Bird Feeder", (11, 55), (250, 1400), "Seed capacity", ("0.5 l", "1.2 l")),
        ),
    ),
    Category(
        "games",
        "Games",
        ("Cardboard", "Beech wood", "Recycled plastic"),
        (
            Kind("Board Game", (19, 75), (700, 2400), "Players", ("2 to 4", "2 to 5", "3 to 6")),
            Kind("Jigsaw Puzzle", (9, 40), (400, 1500), "Pieces", ("500", "1000", "1500")),
            Kind("Kite", (14, 90), (150, 700), "Wingspan", ("80 cm", "120 cm", "165 cm")),
            Kind("Building Set", (15, 130), (350, 2600), "Parts", ("120", "260", "480", "750")),
            Kind("Card Game", (7, 28), (120, 420), "Playing time", ("15 min", "30 min", "45 min")),
        ),
    ),
    Category(
        "cycling",
        "Cycling",
        ("Aluminium", "Hardened steel", "Recycled polyester"),
        (
            Kind("Bike Helmet", (29, 160), (210, 420), "Vents", ("10", "14", "18", "22")),
            Kind("Bike Light", (12, 95), (40, 260), "Brightness", ("80 lm", "250 lm", "600 lm")),
            Kind("Bike Pump", (14, 80), (110, 1600), "Maximum pressure", ("6 bar", "8 bar")),
            Kind("Bike Lock", (19, 120), (500, 2600), "Length", ("85 cm", "110 cm", "130 cm")),
            Kind("Pannier", (35, 150), (600, 1300), "Volume", ("14 l", "20 l", "25 l")),
        ),
    ),
)

BRANDS = (
    "Norrvik",
    "Talbeck",
    "Quillon",
    "Havnes",
    "Brambury",
    "Lumora",
    "Pellworth",
    "Astrelle",
    "Juniper & Row",
    "Oakmere",
)

MODELS = (
    "Alder", "Birch", "Cedar", "Dune", "Ember", "Fjord", "Grove", "Heron", "Iris", "Jetty",
    "Kelp", "Lark", "Moss", "Nimbus", "Onyx", "Pine", "Quartz", "Ridge", "Sable", "Tide",
    "Umber", "Vale", "Willow", "Yarrow", "Zephyr", "Aurora", "Basalt", "Comet", "Delta", "Echo",
    "Flint", "Gable", "Harbour", "Isle", "Juno", "Kestrel", "Lotus", "Meadow", "North", "Orbit",
    "Prism",
)  # fmt: skip

COLOURS = ("Black", "White", "Red", "Forest green", "Navy blue", "Mustard", "Grey", "Copper")

AUTHORS = (
    "Abena T.", "Bruno K.", "Chiara M.", "Dagny S.", "Emeka O.", "Farah L.", "Goran V.",
    "Hanna W.", "Ivo P.", "Jolanta R.", "Kofi D.", "Leila H.", "Mikkel A.", "Nadia E.",
    "Oskar B.", "Priya N.", "Quentin F.", "Rosa C.", "Sven G.", "Tamar I.", "Ulla J.",
    "Viktor Z.", "Wanda Y.", "Yusuf Q.",
)  # fmt: skip

PRAISE = {
    5: ("Could not be happier", "Exactly as described", "Would buy it again", "A joy to use"),
    4: ("Very good, one small flaw", "Solid choice", "Nearly perfect", "Good value"),
    3: ("It is all right", "Neither good nor bad", "Does the job", "Expected a little more"),
    2: ("Not for me", "Disappointing finish", "Stopped working well", "Too flimsy"),
    1: ("Sent it back", "Broke in a week", "Avoid", "Nothing like the picture"),
}
DETAILS = {
    5: ("It has been in use every day and still looks new.", "Even my sister wants one now."),
    4: ("The packaging was a bit large.", "The manual could be clearer, the rest is fine."),
    3: ("It works, but the colour differs from the photo.", "Fine for now and then."),
    2: ("The edges are rough.", "I had to ask twice for a spare part."),
    1: ("A part was missing and nobody answered.", "It came scratched."),
}
USES = (
    "I bought it as a present.",
    "We use it in our holiday flat.",
    "I needed one for the office.",
    "It replaced one that was ten years old.",
    "I ordered two of them.",
)
CHARMS = (
    "made for daily use",
    "built to be repaired",
    "designed with few parts",
    "light in the hand",
    "easy to clean",
)
