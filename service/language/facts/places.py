"""Compares names of places: the same one, or one inside the other.

A short list: the short names people use, and large cities with their countries.
"""

from __future__ import annotations

import re

from service.language.facts.values import Match

_ALIASES = {
    alias: name
    for name, aliases in {
        "new york": "nyc, new york city, ny, the big apple, new york ny",
        "san francisco": "sf, san fran, frisco",
        "los angeles": "la, l.a.",
        "washington": "dc, washington dc, washington d.c.",
        "united states": "usa, us, america, the us, the usa, the states, the united states, u.s.",
        "united kingdom": "uk, the uk, britain, great britain, the united kingdom",
        "netherlands": "the netherlands, holland",
        "philadelphia": "philly",
        "rio de janeiro": "rio",
        "hong kong": "hk",
        "ho chi minh city": "saigon",
        "mumbai": "bombay",
        "bangalore": "bengaluru",
        "kyiv": "kiev",
        "las vegas": "vegas",
        "czech republic": "czechia",
        "united arab emirates": "uae, the uae",
        "cologne": "köln",
        "munich": "münchen",
        "zurich": "zürich",
    }.items()
    for alias in aliases.split(", ")
}
_INSIDE = {
    city: country
    for country, cities in {
        "united states": """
            new york, san francisco, los angeles, chicago, boston, seattle, austin, houston, dallas, denver,
            portland, miami, atlanta, philadelphia, phoenix, san diego, washington, las vegas, detroit, minneapolis,
            nashville, new orleans, california, texas, florida, oregon, colorado, brooklyn, manhattan, queens
        """,
        "united kingdom": """
            london, manchester, birmingham, edinburgh, glasgow, leeds, liverpool, bristol, cardiff, oxford,
            cambridge, belfast, england, scotland, wales
        """,
        "germany": """
            berlin, munich, hamburg, cologne, frankfurt, stuttgart, leipzig, dresden, bavaria, düsseldorf, bremen,
            hanover
        """,
        "france": "paris, lyon, marseille, toulouse, nice, bordeaux, lille, nantes, strasbourg",
        "spain": "madrid, barcelona, valencia, seville, malaga, bilbao",
        "italy": "rome, milan, naples, turin, florence, venice, bologna, palermo",
        "portugal": "lisbon, porto, faro, braga",
        "netherlands": "amsterdam, rotterdam, utrecht, the hague, eindhoven",
        "canada": "toronto, vancouver, montreal, ottawa, calgary, quebec, edmonton",
        "australia": "sydney, melbourne, brisbane, perth, adelaide",
        "japan": "tokyo, osaka, kyoto, yokohama, sapporo, fukuoka",
        "india": "mumbai, delhi, new delhi, bangalore, chennai, kolkata, hyderabad, pune",
        "china": "beijing, shanghai, shenzhen, guangzhou",
        "brazil": "são paulo, sao paulo, rio de janeiro, brasilia, salvador",
        "mexico": "mexico city, guadalajara, monterrey",
        "argentina": "buenos aires, cordoba",
        "austria": "vienna, graz, salzburg, linz",
        "switzerland": "zurich, geneva, basel, bern, lausanne",
        "sweden": "stockholm, gothenburg, malmö",
        "norway": "oslo, bergen, trondheim",
        "denmark": "copenhagen, aarhus",
        "finland": "helsinki, tampere",
        "poland": "warsaw, krakow, gdansk, wroclaw",
        "ireland": "dublin, cork, galway",
        "czech republic": "prague, brno",
        "turkey": "istanbul, ankara, izmir",
        "greece": "athens, thessaloniki",
        "south korea": "seoul, busan",
        "egypt": "cairo, alexandria",
        "nigeria": "lagos, abuja",
        "kenya": "nairobi, mombasa",
        "south africa": "cape town, johannesburg, durban",
        "ukraine": "kyiv, lviv, odesa",
        "vietnam": "hanoi, ho chi minh city",
    }.items()
    for city in " ".join(cities.split()).split(", ")
}


def match(new: str, old: str) -> Match:
    """Returns how two places compare: "NYC" equals "New York", "Berlin" is finer than "Germany"."""
    a, b = _parts(new), _parts(old)
    if not a or not b:
        return Match.OTHER
    if a[0] == b[0]:
        return Match.EQUAL if set(a) == set(b) else Match.FINER if len(a) > len(b) else Match.COARSER
    if _INSIDE.get(a[0]) == b[0] or b[0] in a[1:]:
        return Match.FINER
    if _INSIDE.get(b[0]) == a[0] or a[0] in b[1:]:
        return Match.COARSER
    return Match.OTHER


def _parts(place: str) -> list[str]:
    parts = [
        re.sub(r"^(?:downtown|central|greater) ", "", part.strip(" .").lower())
        for part in re.split(r",| in |\(", place)
        if part.strip(" .)")
    ]
    return [_ALIASES.get(part, part) for part in parts]
