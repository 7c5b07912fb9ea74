"""How written things that are not words are said: abbreviations, units, currencies, symbols. Data."""

from __future__ import annotations

from collections.abc import Mapping

# fmt: off
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)
# fmt: on
MONTH_ABBREVIATIONS: Mapping[str, str] = {
    "jan": "january",
    "feb": "february",
    "mar": "march",
    "apr": "april",
    "jun": "june",
    "jul": "july",
    "aug": "august",
    "sep": "september",
    "sept": "september",
    "oct": "october",
    "nov": "november",
    "dec": "december",
}

# Said instead of the letters when written with a point behind; a sentence does not end there.
ABBREVIATIONS: Mapping[str, str] = {
    "mr": "mister",
    "mrs": "missus",
    "ms": "miz",
    "dr": "doctor",
    "prof": "professor",
    "st": "saint",  # "street" behind a name: see tokens
    "jr": "junior",
    "sr": "senior",
    "rev": "reverend",
    "gen": "general",
    "sgt": "sergeant",
    "capt": "captain",
    "lt": "lieutenant",
    "col": "colonel",
    "gov": "governor",
    "sen": "senator",
    "rep": "representative",
    "ave": "avenue",
    "blvd": "boulevard",
    "rd": "road",
    "apt": "apartment",
    "dept": "department",
    "est": "established",
    "ext": "extension",
    "approx": "approximately",
    "appt": "appointment",
    "vs": "versus",
    "etc": "et cetera",
    "inc": "incorporated",
    "ltd": "limited",
    "corp": "corporation",
    "co": "company",
    "no": "number",  # only before a digit: see tokens
    "vol": "volume",
    "fig": "figure",
    "tel": "telephone",
    "min": "minutes",
    "max": "maximum",
    "hr": "hour",
    "hrs": "hours",
    "mon": "monday",
    "tue": "tuesday",
    "tues": "tuesday",
    "wed": "wednesday",
    "thu": "thursday",
    "thurs": "thursday",
    "fri": "friday",
    "sat": "saturday",
    "sun": "sunday",
    **MONTH_ABBREVIATIONS,
}
# Of those, words when a sentence ends behind them: "No.", "the sun.", "I sat."
ALSO_WORDS = frozenset({"no", "sun", "sat", "wed", "fig", "mon", "max", "min", "mar", "gen", "rep", "est", "col", "co"})
# These stand before a name or number, so a sentence does not end behind them either.
TITLES = frozenset(
    {"mr", "mrs", "ms", "dr", "prof", "st", "rev", "gen", "sgt", "capt", "lt", "col", "gov", "sen", "rep"}
)

WEEKDAYS: Mapping[str, str] = {
    "mon": "monday",
    "tue": "tuesday",
    "wed": "wednesday",
    "thu": "thursday",
    "fri": "friday",
    "sat": "saturday",
    "sun": "sunday",
}
# Before a number that is read digit by digit; those of the second kind with "number" or a sign for it between.
BEFORE_DIGITS = frozenset({"pin", "code", "codes", "passcode", "password", "otp", "extension", "ending", "ends", "zip"})
BEFORE_NUMBER = frozenset(
    {"account", "order", "reference", "confirmation", "tracking", "ticket", "booking", "invoice", "serial", "case"}
    | {"card", "phone", "telephone", "policy", "member", "customer", "reservation", "routing", "claim"}
)
# A single letter behind one of these ends a sentence with its point: elsewhere it is an initial.
BEFORE_LETTER = frozenset(
    {"plan", "option", "vitamin", "section", "grade", "type", "part", "class", "appendix", "exhibit", "group", "team"}
    | {
        "gate",
        "terminal",
        "building",
        "line",
        "door",
        "platform",
        "row",
        "seat",
        "unit",
        "letter",
        "point",
        "hepatitis",
    }
)

DOTTED: Mapping[str, str] = {"e.g": "for example", "i.e": "that is", "a.k.a": "also known as", "ph.d": "P H D"}

# Behind a number: singular, plural.
UNITS: Mapping[str, tuple[str, str]] = {
    "%": ("percent", "percent"),
    "°": ("degree", "degrees"),
    "°c": ("degree celsius", "degrees celsius"),
    "°f": ("degree fahrenheit", "degrees fahrenheit"),
    "km": ("kilometer", "kilometers"),
    "m": ("meter", "meters"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "mi": ("mile", "miles"),
    "ft": ("foot", "feet"),
    "in": ("inch", "inches"),
    "yd": ("yard", "yards"),
    "kg": ("kilogram", "kilograms"),
    "g": ("gram", "grams"),
    "mg": ("milligram", "milligrams"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "l": ("liter", "liters"),
    "ml": ("milliliter", "milliliters"),
    "ms": ("millisecond", "milliseconds"),
    "s": ("second", "seconds"),
    "sec": ("second", "seconds"),
    "secs": ("second", "seconds"),
    "min": ("minute", "minutes"),
    "mins": ("minute", "minutes"),
    "h": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "hrs": ("hour", "hours"),
    "kb": ("kilobyte", "kilobytes"),
    "mb": ("megabyte", "megabytes"),
    "gb": ("gigabyte", "gigabytes"),
    "tb": ("terabyte", "terabytes"),
    "mbps": ("megabit per second", "megabits per second"),
    "gbps": ("gigabit per second", "gigabits per second"),
    "hz": ("hertz", "hertz"),
    "khz": ("kilohertz", "kilohertz"),
    "mhz": ("megahertz", "megahertz"),
    "ghz": ("gigahertz", "gigahertz"),
    "w": ("watt", "watts"),
    "kw": ("kilowatt", "kilowatts"),
    "kwh": ("kilowatt hour", "kilowatt hours"),
    "v": ("volt", "volts"),
    "gal": ("gallon", "gallons"),
    "kcal": ("kilocalorie", "kilocalories"),
    "db": ("decibel", "decibels"),
    "tbsp": ("tablespoon", "tablespoons"),
    "tsp": ("teaspoon", "teaspoons"),
    "mah": ("milliamp hour", "milliamp hours"),
    "yr": ("year", "years"),
    "yrs": ("year", "years"),
    "m²": ("square meter", "square meters"),
    "km²": ("square kilometer", "square kilometers"),
    "sqft": ("square foot", "square feet"),
    "sq ft": ("square foot", "square feet"),
    "mph": ("mile per hour", "miles per hour"),
    "kmh": ("kilometer per hour", "kilometers per hour"),
    "km/h": ("kilometer per hour", "kilometers per hour"),
}

# One, many, one hundredth, many hundredths; None: not divided.
CURRENCIES: Mapping[str, tuple[str, str, str | None, str | None]] = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", None, None),
    "₩": ("won", "won", None, None),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "원": ("won", "won", None, None),
}
CURRENCY_CODES: Mapping[str, str] = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "KRW": "₩", "INR": "₹"}
MAGNITUDES: Mapping[str, str] = {"k": "thousand", "m": "million", "b": "billion", "bn": "billion", "t": "trillion"}

SYMBOLS: Mapping[str, str] = {
    "&": "and",
    "@": "at",
    "+": "plus",
    "=": "equals",
    "%": "percent",
    "×": "times",
    "÷": "divided by",
    "°": "degrees",
    "§": "section",
    "©": "copyright",
    "$": "dollars",
    "€": "euros",
    "£": "pounds",
    "½": "one half",
    "¼": "one quarter",
    "¾": "three quarters",
    "№": "number",
    "*": "star",
}
# Behind an amount and a stroke: $10/mo.
_PERIODS = ("second", "minute", "hour", "day", "night", "week", "month", "quarter", "year")
_PIECES = ("person", "user", "seat", "unit", "item", "call", "mile", "gallon", "page")
PER: Mapping[str, str] = {
    **{word: word for word in (*_PERIODS, *_PIECES)},
    "sec": "second",
    "min": "minute",
    "hr": "hour",
    "h": "hour",
    "wk": "week",
    "mo": "month",
    "yr": "year",
    "kg": "kilogram",
    "lb": "pound",
    "km": "kilometer",
    "gb": "gigabyte",
    "kwh": "kilowatt hour",
}
# Before a number.
COMPARISONS: Mapping[str, str] = {
    "<": "less than",
    ">": "more than",
    "≤": "at most",
    "≥": "at least",
    "<=": "at most",
    ">=": "at least",
    "~": "about",
    "≈": "about",
    "±": "plus or minus",
}
IN_ADDRESSES: Mapping[str, str] = {
    ".": "dot",
    "@": "at",
    "-": "dash",
    "_": "underscore",
    "+": "plus",
    "/": "slash",
    ":": "colon",
    "~": "tilde",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "#": "hash",
    "%": "percent",
}

DENOMINATORS: Mapping[int, tuple[str, str]] = {
    2: ("half", "halves"),
    3: ("third", "thirds"),
    4: ("quarter", "quarters"),
    5: ("fifth", "fifths"),
    8: ("eighth", "eighths"),
    10: ("tenth", "tenths"),
}

# fmt: off
# Capitals that are spelled although their letters are also a word, or listed as one.
SPELLED = frozenset({
    "AI", "API", "ATM", "CEO", "CFO", "CPU", "CTO", "DIY", "DNS", "DOB", "ETA", "EU", "FAQ", "FYI", "GPS", "GPU", "HR",
    "ID", "IP", "IT", "LLC", "LLM", "OK", "PC", "PO", "PR", "QR", "RSVP", "SMS", "SSN", "STT", "TTS", "TV", "UK", "UN",
    "URL", "US", "USA", "USB", "VIP", "VPN",
})
# fmt: on
