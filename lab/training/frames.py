"""The beginnings and ends of stories: openings, remarks on the hero, and endings.

stories.py explains the notation.
"""

OPENINGS = [
    "Once upon a time, there was a {adj} {kind} named {N}. {He} lived {home}.",
    "Once upon a time, there was a {adj} {kind} who lived {home}. {His} name was {N}.",
    "Once upon a time, a {adj} {kind} named {N} lived {home}.",
    "Once upon a time, there lived a {adj} {kind} called {N}. {His} home was {home}.",
    "Once upon a time, {home}, there lived a {adj} {kind} named {N}.",
    "Once upon a time, {N} the {kind} lived {home} with {his} {family}.",
    "Once there was a {adj} {kind} named {N}, who lived {home}.",
    "There once was a {adj} {kind} called {N}. {He} lived {home}.",
    "Long ago, a {adj} {kind} named {N} lived {home}.",
    "Long, long ago, there was a {adj} {kind} called {N} who lived {home}.",
    "Far away, {home}, lived a {adj} {kind} named {N}.",
    "In a [small|quiet|sunny] village, there was a {adj} {kind} named {N}. Everyone knew {him} well.",
    "Deep in the forest, there lived a {adj} {kind} named {N}.",
    "One [day|morning], a {adj} {kind} named {N} woke up early. {He} lived {home}.",
    "One [sunny|cold|bright|windy] [day|morning], {N} the {kind} looked out of the window.",
    "Every morning, {N} the {kind} walked to {place}. {He} lived {home}.",
    "The {adj} {kind} was called {N}, and {he} lived {home}.",
    "The little {kind} was named {N}. {He} lived {home} with {his} {family}.",
    "{N} was a {adj} {kind}. {He} lived {home}.",
    "{N} was a {adj} {kind} who lived {home} with {his} {family}.",
    "Many years ago, {home}, there was a {adj} {kind} named {N}.",
    "It was a [cold|warm|quiet|bright] [morning|evening], and {N} the {kind} was at home. {He} lived {home}.",
    "This is the story of {N}, a {adj} {kind} who lived {home}.",
    "In the middle of [spring|summer|autumn|winter], a {adj} {kind} named {N} came to {place}.",
]

TRAITS = [
    "{He} had a {color} {obj2} that {he} took everywhere.",
    "{N} loved to walk to {place} and look at the [clouds|birds|flowers|boats].",
    "{N} liked {food} more than anything else.",
    "Every [day|evening], {he} played {game} with {his} {family}.",
    "{He} was always [kind|polite|friendly] to everyone {he} met.",
    "{His} {family} told {him} a story every night.",
    "{N} wore a {color} hat, even when {he} was asleep.",
    "{He} knew every [tree|path|stone] near {place}.",
    "In the morning {he} fed the birds, and in the evening {he} watched the stars.",
    "{N} had many dreams, and {he} told them to everyone.",
    "{He} did not have much, but {he} was [happy|content] with what {he} had.",
    "People often saw {him} near {place}, humming a little song.",
]

ENDINGS = [
    "And they lived happily ever after.", "From that day on, {N} and {F} were the best of friends.",
    "And {N} never forgot that day.", "That night, {N} slept very well.",
    "And so {N} learned that [friends help each other|kindness always comes back|it is never too late to try|a good heart is worth more than gold].",
    "It was the best day of {his} life.", "{N} smiled, because {he} knew that all was well. The end.",
    "And if you walk to {place}, you may still see {N} and {F} there.",
    "Then the stars came out, and everyone went home happy.", "The end.",
    "When {N} was old, {he} still told this story to everyone.",
    "And that is how {N} and {F} became friends for life.",
    "\"What a day!\" said {N}, and {he} closed {his} eyes and fell asleep.",
    "After that, {N} was the happiest {kind} near {place}.",
]
