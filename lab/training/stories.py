"""Fills the templates of frames.py and plots.py with people, places and things.

A template may hold slots in braces and choices in brackets, "[a|b|]".  All
slots are drawn once per story, so every name, pronoun and thing stays the same
from the first sentence to the last.  The hero and the friend never share a
pronoun, which keeps each "he" and "she" clear.
"""
import random
import re

import frames
import plots

GIRLS = ("Lily Anna Mia Ella Rose Nora Ruby Daisy Clara Molly Lucy Emma Zoe Ivy Hazel Pip Tilly "
         "Bella Sara Maya Luna Poppy Wren Greta").split()
BOYS = ("Tom Ben Max Sam Leo Jack Finn Oscar Theo Hugo Toby Milo Felix Otto Jasper Rusty Barney "
        "Bruno Henry Owen Arlo Ned Gus Peter").split()
ANIMALS = ("fox rabbit bear mouse cat dog duck frog hedgehog squirrel turtle deer lamb pony goat pig "
           "kitten puppy badger otter mole beaver panda monkey penguin owl goose donkey").split()
ADJECTIVES = ("little small young kind clever brave shy curious cheerful gentle quiet playful happy "
              "funny lively careful sleepy friendly busy lonely").split()
HOMES = ["in a small house by the river", "in a cozy home under an old oak",
         "in a village near the sea", "at the edge of a green forest", "on a farm in the valley",
         "in a little hut on a hill", "near a quiet lake", "in a warm house beside the mill",
         "in a small town between two mountains", "next to a wide meadow",
         "in a red house at the end of a long road", "not far from an old stone bridge"]
PLACES = ["the forest", "the meadow", "the river", "the lake", "the garden", "the village", "the hill",
          "the old mill", "the beach", "the market", "the big field", "the orchard"]
SPOTS = ["under the old oak", "behind the barn", "in the tall grass", "near the well",
         "beside the stone wall", "under a wooden bench", "behind a pile of leaves",
         "next to the pond", "between two big rocks", "inside a hollow log", "under the bridge",
         "behind the garden gate", "at the foot of the hill", "on a low branch"]
THINGS = ["kite", "ball", "hat", "scarf", "drum", "book", "basket", "lantern", "flute", "bell", "boat",
          "wagon", "ring", "coat", "umbrella", "doll", "spoon", "key", "button", "whistle"]
COLORS = "red blue green yellow white golden purple silver orange pink".split()
FOODS = ["bread", "cake", "rolls", "honey", "cheese", "apple pie", "jam", "pears", "nuts", "berries",
         "cookies", "pancakes"]
PLURAL_FOODS = {"rolls", "pears", "nuts", "berries", "cookies", "pancakes"}
SEEDS = [("sunflower", "flower"), ("pumpkin", "pumpkin"), ("tulip", "flower"), ("bean", "plant"),
         ("rose", "flower"), ("pea", "plant"), ("melon", "melon"), ("poppy", "flower")]
SKILLS = [("swim", "swimming"), ("sing", "singing"), ("dance", "dancing"), ("paint", "painting"),
          ("read", "reading"), ("skate", "skating"), ("bake", "baking"), ("climb trees", "climbing"),
          ("row a boat", "rowing"), ("play the drum", "playing"), ("jump rope", "jumping"),
          ("whistle", "whistling")]
GAMES = ["hide and seek", "tag", "ball", "cards", "pirates", "chess", "catch"]
FEARS = [("the dark", "shadow"), ("thunder", "flash of light"), ("deep water", "wave"),
         ("high places", "step"), ("the old cave", "noise"), ("strangers", "stranger")]
WISE = ["an old owl", "a wise turtle", "an old woman", "a kind farmer", "a gray donkey",
        "a friendly shepherd", "an old sailor", "a tall heron", "the miller", "the baker"]
WEATHER = ["The sun was shining", "A soft wind was blowing", "White clouds moved across the sky",
           "The air was cool and fresh", "Birds were singing in the trees", "The sky was clear and blue",
           "A light rain had just stopped", "The leaves were turning gold"]
HELPERS = ["a long rope", "a strong branch", "a wooden ladder", "a wide plank"]
TRAPS = [("fallen into a deep hole", "out of the hole"), ("got stuck in the thick mud", "out of the mud"),
         ("climbed too high and could not get down", "down to the ground"),
         ("fallen into the cold stream", "out of the stream")]
FINDS = [("an old map", "map"), ("a shiny key", "key"), ("a small wooden box", "box"),
         ("a letter with no name on it", "letter"), ("a tiny golden bell", "bell")]
TREASURES = ["a box full of bright stones", "a secret garden full of flowers", "a chest of old books",
             "a room full of toys", "a hidden waterfall", "a nest with five blue eggs",
             "a little music box"]
GIFTS = ["a warm scarf", "a clay cup", "a picture of the house", "a wooden bird",
         "a crown of flowers", "a new song", "a soft pillow"]
FAMILY = ["mother", "father", "grandmother", "grandfather", "aunt", "uncle"]
BREAKABLES = ["vase", "window", "lamp", "plate", "jar", "clock", "mirror", "teapot"]


def pronouns(slots, prefix, female):
    """Adds he/him/his forms under `prefix` ("" for the hero, "f" for the friend, ...)."""
    he, him, his = ("she", "her", "her") if female else ("he", "him", "his")
    slots.update({prefix + "he": he, prefix + "him": him, prefix + "his": his,
                  prefix + "He": he.capitalize(), prefix + "His": his.capitalize(),
                  prefix + "self": him + "self"})


def person(rng, female, avoid):
    """A name and a kind that is not `avoid`; a third of all people are children."""
    name = rng.choice(GIRLS if female else BOYS)
    kind = ("girl" if female else "boy") if rng.random() < 0.33 else rng.choice(ANIMALS)
    while kind == avoid:
        kind = rng.choice(ANIMALS)
    return name, kind


def draw_slots(rng):
    """All words of one story."""
    s = {}
    female = rng.random() < 0.5
    pronouns(s, "", female)
    pronouns(s, "f", not female)
    s["N"], s["kind"] = person(rng, female, None)
    s["F"], s["fkind"] = person(rng, not female, s["kind"])
    s["adj"], s["fadj"] = rng.sample(ADJECTIVES, 2)
    s["home"] = rng.choice(HOMES)
    s["place"], s["place2"] = rng.sample(PLACES, 2)
    s["spot"], s["spot2"], s["spot3"] = rng.sample(SPOTS, 3)
    s["obj"], s["obj2"] = rng.sample(THINGS, 2)
    s["color"], s["color2"] = rng.sample(COLORS, 2)
    s["food"] = rng.choice(FOODS)
    plural = s["food"] in PLURAL_FOODS
    s["it"], s["was"] = ("them", "were") if plural else ("it", "was")
    s["piece"] = "a handful of" if plural else "a bit of"
    s["seed"], s["plant"] = rng.choice(SEEDS)
    s["skill"], s["doing"] = rng.choice(SKILLS)
    s["game"] = rng.choice(GAMES)
    s["fear"], s["scare"] = rng.choice(FEARS)
    s["wise"] = rng.choice(WISE)
    s["thewise"] = re.sub(r"^(an?|the) ", "the ", s["wise"])
    s["weather"] = rng.choice(WEATHER)
    s["tool"] = rng.choice(HELPERS)
    s["trap"], s["out"] = rng.choice(TRAPS)
    s["find"], s["found"] = rng.choice(FINDS)
    s["treasure"] = rng.choice(TREASURES)
    s["gift"] = rng.choice(GIFTS)
    s["family"] = rng.choice(FAMILY)
    pronouns(s, "p", s["family"] in ("mother", "grandmother", "aunt"))
    s["broken"] = rng.choice(BREAKABLES)
    return s


CHOICE = re.compile(r"\[([^\[\]]*)\]")


def expand(rng, template, slots):
    """One template as text: choices first, then slots, then a/an and capitals."""
    text = CHOICE.sub(lambda m: rng.choice(m.group(1).split("|")), template)
    text = text.format_map(slots)
    text = re.sub(r" {2,}", " ", text).strip()
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    return re.sub(r"(^|[.!?] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)


def endings(with_friend):
    """The endings that suit a story in which the friend was named, or was not."""
    return [e for e in frames.ENDINGS if with_friend or "{F}" not in e]


def tell(rng):
    """The text of one story."""
    slots = draw_slots(rng)
    plot = rng.choice(plots.PLOTS)
    parts = [rng.choice(frames.OPENINGS)]
    if rng.random() < 0.6:
        parts.append(rng.choice(frames.TRAITS))
    for step in plot:
        optional = step[0] == "?"
        if not optional or rng.random() < 0.5:
            parts.append(rng.choice(step[1:] if optional else step))
    text = " ".join(expand(rng, p, slots) for p in parts)
    return text + " " + expand(rng, rng.choice(endings(slots["F"] in text)), slots)


def stories(seed, count):
    """`count` different stories; the same for the same seed."""
    rng, seen = random.Random(seed), set()
    while len(seen) < count:
        text = tell(rng)
        if text not in seen:
            seen.add(text)
            yield text
