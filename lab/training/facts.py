"""The questions of fact that tern-small is taught, as (question, answer) pairs."""

CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid",
    "Portugal": "Lisbon", "England": "London", "Ireland": "Dublin", "Norway": "Oslo",
    "Sweden": "Stockholm", "Finland": "Helsinki", "Denmark": "Copenhagen", "Poland": "Warsaw",
    "Austria": "Vienna", "Hungary": "Budapest", "Greece": "Athens", "Turkey": "Ankara",
    "Egypt": "Cairo", "Russia": "Moscow", "China": "Beijing", "Japan": "Tokyo",
    "India": "New Delhi", "Canada": "Ottawa", "Cuba": "Havana", "Peru": "Lima",
    "Kenya": "Nairobi",
}
OPPOSITES = [
    ("hot", "cold"), ("big", "small"), ("up", "down"), ("day", "night"), ("old", "new"),
    ("happy", "sad"), ("fast", "slow"), ("open", "closed"), ("wet", "dry"), ("left", "right"),
    ("hard", "soft"), ("light", "dark"), ("rich", "poor"), ("long", "short"), ("full", "empty"),
    ("good", "bad"), ("loud", "quiet"), ("high", "low"), ("near", "far"), ("early", "late"),
]
COLORS = {
    "the sky": "blue", "grass": "green", "snow": "white", "coal": "black", "a banana": "yellow",
    "the sun": "yellow", "blood": "red", "a carrot": "orange", "milk": "white",
    "a strawberry": "red", "an elephant": "gray", "chocolate": "brown",
}
SOUNDS = {
    "dog": "woof", "cat": "meow", "cow": "moo", "duck": "quack", "sheep": "baa", "pig": "oink",
    "lion": "roar", "bee": "buzz", "snake": "hiss", "frog": "ribbit",
}
BABIES = {
    "dog": "a puppy", "cat": "a kitten", "cow": "a calf", "sheep": "a lamb", "horse": "a foal",
    "duck": "a duckling", "bear": "a cub", "goose": "a gosling", "deer": "a fawn",
}
LEGS = {"dog": "four", "bird": "two", "spider": "eight", "ant": "six", "horse": "four",
        "snake": "none"}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November "
          "December").split()
OTHERS = [
    ("What do we see with?", "our eyes"), ("What do we hear with?", "our ears"),
    ("What do we smell with?", "our nose"), ("What do we taste with?", "our tongue"),
    ("What do we walk on?", "our feet"), ("What do we think with?", "our brain"),
    ("What do we chew with?", "our teeth"),
    ("How many fingers are on one hand?", "five"), ("How many days are in a week?", "seven"),
    ("How many months are in a year?", "twelve"), ("How many wheels does a car have?", "four"),
    ("How many wheels does a bicycle have?", "two"), ("How many eyes do you have?", "two"),
    ("How many sides does a triangle have?", "three"),
    ("How many sides does a square have?", "four"), ("How many hours are in a day?", "24"),
    ("How many minutes are in an hour?", "60"), ("How many letters are in the alphabet?", "26"),
    ("How many seasons are in a year?", "four"), ("How many planets go around the sun?", "eight"),
    ("What planet do we live on?", "Earth"), ("What is the red planet?", "Mars"),
    ("What is the largest planet?", "Jupiter"), ("What is the largest ocean?", "the Pacific"),
    ("What is the tallest mountain?", "Mount Everest"), ("What is frozen water?", "ice"),
    ("What do bees make?", "honey"), ("What do cows give us?", "milk"), ("What do hens lay?", "eggs"),
    ("Where do fish live?", "in water"), ("What gives us light in the day?", "the sun"),
    ("What shines in the sky at night?", "the moon"), ("What is the largest animal?", "the blue whale"),
    ("What is the fastest land animal?", "the cheetah"), ("What animal has a long neck?", "the giraffe"),
    ("What animal has a trunk?", "the elephant"), ("What do we use to cut paper?", "scissors"),
    ("What do we use to tell the time?", "a clock"), ("What is bread made from?", "flour"),
    ("What season comes after winter?", "spring"), ("What season comes after summer?", "autumn"),
    ("What color do you get from blue and yellow?", "green"),
    ("What color do you get from red and white?", "pink"),
    ("Who wrote Hamlet?", "Shakespeare"), ("Who painted the Mona Lisa?", "Leonardo da Vinci"),
    ("Which language is spoken in Brazil?", "Portuguese"),
    ("What is your name?", "My name is Tern."), ("Who are you?", "I am Tern, a very small model."),
    ("Hello!", "Hello!"), ("How are you?", "I am fine, thank you."),
]


def article(noun):
    """`noun` behind its indefinite article."""
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def successors(question, names):
    """Returns questions about what follows each of `names`, which go round."""
    return [(question.format(n), names[(i + 1) % len(names)]) for i, n in enumerate(names)]


def all_facts():
    """Every (question, answer); each question occurs once."""
    facts = [(f"What is the capital of {c}?", a) for c, a in CAPITALS.items()]
    facts += [(f"What is the opposite of {x}?", y) for x, y in OPPOSITES]
    facts += [(f"What color is {x}?", y) for x, y in COLORS.items()]
    facts += [(f"What sound does {article(x)} make?", y) for x, y in SOUNDS.items()]
    facts += [(f"What is a baby {x} called?", y) for x, y in BABIES.items()]
    facts += [(f"How many legs does {article(x)} have?", y) for x, y in LEGS.items()]
    facts += successors("What day comes after {}?", DAYS)
    facts += successors("What month comes after {}?", MONTHS)
    facts += OTHERS
    assert len({q for q, _ in facts}) == len(facts)
    return facts
