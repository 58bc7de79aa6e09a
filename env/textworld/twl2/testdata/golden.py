#!/usr/bin/env python3
"""Expand small grammars with the real TextWorld and store what it says.

    pip install textworld==1.7.0 fast-downward-textworld
    python golden.py > golden.json

A world is a type tree, entities, names and facts. A case is a grammar, what is bound, what is expanded, and the outcome: "want",
or "error": "load" (the grammar is not read) or the name of the exception when it is used. "refused" marks cases that TextWorld
reads and the Go package refuses on purpose.
"""
import json
import random
import sys

from textworld.envs.pddl.logic import GameLogic
from textworld.generator.game import EntityInfo
from textworld.logic import Placeholder, Proposition, State, Type, Variable

HARBOUR = {
    "types": {"place": "object", "thing": "object", "boat": "thing", "cargo": "thing", "crate": "cargo", "barrel": "cargo",
              "small": "crate", "big": "crate"},
    "entities": {"quay1": "place", "quay2": "place", "sea": "place", "ferry": "boat", "z1": "small", "y1": "big", "b1": "barrel",
                 "b2": "barrel", "c0": "crate", "k0": "cargo", "agent1": "boat"},
    "names": {"quay1": "north quay", "quay2": "south quay", "ferry": "ferry 1", "b1": "barrel 2", "b2": "barrel 1",
              "agent1": "agent1 ", "y1": "y\u00e9 {1}"},
    "facts": ["at ferry quay1", "at z1 quay1", "at y1 quay1", "at b1 quay1", "at b2 quay2", "at c0 quay2", "at k0 quay2",
              "road quay1 quay2", "road quay2 quay1", "road quay1 sea", "heavy c0", "heavy b2", "wet sea", "not_dry b1", "night",
              "near b1 b2", "near b2 b1", "near b1 b1", "in b1 ferry", "in z1 c0", "load ferry b1 quay1", "load ferry b2 quay2"],
}
EMPTY = {"types": {"place": "object"}, "entities": {"a": "place"}, "names": {}, "facts": []}
WORLDS = {"harbour": HARBOUR, "empty": EMPTY}

LISTS = {"list_empty": "nothing", "list_separator": ", ", "list_last_separator": ", and "}


class Facts(State):
    def __init__(self, world, logic):
        from collections import Counter, defaultdict
        self._facts, self._vars_by_name = defaultdict(set), {}
        self._vars_by_type, self._var_counts = defaultdict(set), Counter()
        self._logic = logic
        for fact in world["facts"]:
            name, *ids = fact.split()
            self.add_fact(Proposition(name, [Variable(i, world["entities"][i]) for i in ids]))


def ancestors(types, name):
    found = []
    while name != "object":
        name = types[name]
        found.append(name)
    return found


def run(case):
    world = WORLDS[case["world"]]
    try:
        logic = GameLogic(domain="", grammar=case["grammar"])
    except Exception as e:
        return {"error": "load"}
    logic.types.add(Type("object", []))
    for name in world["types"]:
        logic.types.add(Type(name, ancestors(world["types"], name)))  # as the planner's reader gives them
    state = Facts(world, logic)
    infos = {}
    for i, typ in world["entities"].items():
        info = infos[i] = EntityInfo(i, typ)
        info.name, info.definite, info.indefinite = world["names"].get(i, i), "the", "a"
    bound = case.get("bound", {})
    context = {
        "state": state,
        "facts": list(state.facts),
        "variables": {p: infos[b["ID"]] for p, b in bound.items()},
        "mapping": {Placeholder(p, b["Type"]): Variable(b["ID"], b["Type"]) for p, b in bound.items()},
        "entity_infos": infos,
    }
    kind, name = case["say"].split(" ", 1)
    try:
        if kind == "symbol":
            text = "#" + name + "#"
        else:
            action = logic.actions[name]
            text = action.template if kind == "command" else action.feedback_rule
        return {"want": logic.grammar.derive(text, context)}
    except Exception as e:
        return {"error": type(e).__name__}


def rules(r):
    """Short for rules: a text, a list of texts, or a list of (condition, text)."""
    out = {}
    for name, alternatives in r.items():
        if isinstance(alternatives, str):
            alternatives = [alternatives]
        out[name] = [{"rhs": a} if isinstance(a, str) else a if isinstance(a, dict) else {"condition": a[0], "rhs": a[1]}
                     for a in alternatives]
    return out


def block(r):
    return 'grammar :: """\n' + json.dumps(rules(r)) + '\n""";\n'


CASES = []


def case(grammar, say="symbol x", bound=None, world="harbour", refused=False):
    c = {"world": world, "grammar": grammar, "say": say}
    if bound:
        c["bound"] = {p: {"ID": b.split(":")[0], "Type": b.split(":")[1]} for p, b in bound.items()}
    c.update(run(c))
    if refused:
        c["refused"] = True
    CASES.append(c)


def text(rhs, **more):
    """The text of rule x."""
    extra = more.pop("rules", {})
    case(block({"x": rhs, **(LISTS if "[" in str(rhs) + str(extra) else {}), **extra}), **more)


def condition(q, **more):
    text([(q, "yes"), "no"], **more)


B = {"t": "b1:barrel", "p": "quay1:place"}

# Plain text and what ends it.
for t in ["", " ", "\n", "plain", " leading", "\tleading", "trailing ", "trailing\t", "two\nlines", "two\n  lines", "\n\nblank lines first",
          "  \n  indented after blank", "// a comment\ntext", "// one\n// two\ntext", "  // not at the start\ntext", "text // not at the start",
          "text\n// in the middle\nmore", "//", "//\n", "// only a comment", "semi; colon", "bar | bar", "less < more", "more > less",
          "open [ bracket", "close ] bracket", "open { brace", "close } brace", "hash # alone", "hash #", "quoted \"text\" inside",
          "\"quoted\"", "\"unclosed", "un\"closed", "\"with {t.name} inside\"", "a\"b\"c\"d\"e", "\"\"", "\"a\"\t\"b\"", "\"a\n\"  b",
          "\"a\n\"// b\nc", "'single'", "percent % and & and * and @", "back\\slash", "back\\nslash", "caf\u00e9 \u2603 \U0001f600",
          "\u00a0no-break first", "\u2003em first", "\x1cfs first", "a\x1cb", "carriage\r\nreturn", "\r\nfirst", "()!?,.:-_/+=~`^$", "a\tb", "\t\t\ta"]:
    text(t, bound=B)

# Symbols.
R = {"y": "why", "y(o)": "with o", "y, z": "both", "a-b/c!<d>.": "odd", "tab\tname": "tabbed", " y": "blank first", "y ": "blank last",
     "\u00e9": "accent", "list": "l", "deep": "#deeper#", "deeper": "<cut", "e": "", "lead": "  lead", "nl": "\nnl", "under_1": "u", "cond": [("wet(p:place)", "w")]}
for t in ["#y#", "a#y#b", "#y##y#", "#y# #y#", "#y#\t#y#", "#y#\n#y#", "#y(o)#", "#y, z#", "#a-b/c!<d>.#", "#tab\tname#", "# y#", "#y #",
          "#\ty#", "#\u00e9#", "#none#", "#deep# after", "#deep#", "[#e#]", "a #e#b", "a #lead#.", "a #nl#.", "#under_1#", "##y#", "#y", "y#",
          "#y:z#", "#Y#", "#cond#", "#list#", "(#y#)", "#y#.#y#", "#\ny#", "#y\n#"]:
    text(t, rules=R)
text("#x#-", rules={"x": "again"})
case(block({"x": "first"}) + block({"x": "second"}))
case(block({"x": ["a", "b"], "z": "z"}) + block({"x": "c #z#"}))
case(block({"x": []}))
case(block({"x": "a"}) + block({"x": []}))
case(block({"x": [("night()", "night"), ("wet(p:place)", "wet"), "none"]}))
case(block({"x": [("dry(p:place)", "dry"), ("wet(p:place)", "wet"), "none"]}))
case(block({"x": [("dry(p:place)", "dry"), ("snow()", "snow")]}))
case(block({"x": [{"rhs": "heavy", "weight": 0}, {"rhs": "light", "weight": 9}]}))
case(block({"x": [{"rhs": "null", "condition": None}, {"rhs": "b"}]}))
case(block({"x": [{"rhs": "empty", "condition": ""}, {"rhs": "b"}]}))
case(block({"x": [{"rhs": "blank", "condition": " "}, {"rhs": "b"}]}))
case(block({"x": [{"rhs": "extra", "comment": {"deep": [1, -2.5e3, None, True, "s"]}}]}))

# Expressions.
for e in ["t", "t.name", "t.id", "t.type", "t.indefinite", "t.definite", "t.noun", "t.adj", "t.desc", "t.room_type", "t.synonyms",
          " t.name", "t.name ", "\tt.name", "t . name", "t.name + p.name", "t.name+' at '+p.name", "t.indefinite + ' ' + t.name",
          "t.desc or t.name", "t.name or t.id", "'' or t.id", "t.name or ''", "'a' 'b'", "'a' \"b\" + 'c'", "'it\\'s'", "\"it's\"", "'a\\\\b'",
          "'a\\qb'", "'tab\\there'", "'new\\nline'", "('a')", "('a' + 'b') + 'c'", "(t.desc or 'x') + 'y'", "t.desc and t.name", "t.name and p.name",
          "not t.desc", "not t.name", "not not t.name", "t.name == 'barrel 2'", "t.name != 'barrel 2'", "t == t", "t == p", "t != 'b1'", "t.desc == t.noun",
          "'one' if t.id == 'b1' else 'two'", "'one' if t.id == 'b2' else 'two' if p else 'three'", "'a' if t.desc else 'b' + 'c'",
          "t.name.upper()", "p.name.capitalize()", "(t.name + ' x').title()", "'  pad '.strip() + '.'", "'ABC d'.lower()", "'abC dEf'.capitalize()",
          "t.name if not t.desc else t.desc", "t.desc or t.noun or 'last'", "t.desc or None", "None", "'a' or 'b' and 'c'", "'' and 'b' or 'c'",
          "not t.desc and 'd'", "t.name[0]", "t.name < p.name", "t.nothing", "q.name", "t.name +", "t.name p.name", "+ t.name", "t.desc + 'x'", "t + 'x'",
          "'unclosed", "t.name()", "t.", "", "(t.name", "t.name)", "'x' + (t.desc if t.desc else 'y')", "'#' + t.name", "';' + t.name",
          "'a'.upper().lower()", "t.name.upper() + '!'", "'' if t else 'x'", "'a' + 'b' if t else 'c'", "t.id == 'b1' and t.name", "'title case-it'.title()",
          "if", "t.class", "'x''y'", "\"\"", "''", "t.id == p.id or 'different'"]:
    text("<" if e is None else "a {" + e + "} b", bound=B)
for e in ["'x' == 'x' == 'x'", "1", "'a' * 3", "len(t.name)", "str(t)", "self", "context", "'''a'''", "u'a'", "'\\x41'", "t.name # c", "True",
          "t.name.replace('b', 'c')", "-t", "t is t", "'a' in t.name", "lambda: 1", "'x' == 'x' != 'y'"]:
    text("a {" + e + "} b", bound=B, refused=True)
text("{y.name} {y}", bound={"y": "y1:big"})
text("{agent.name}.{agent.name.strip()}.", bound={"agent": "agent1:boat"})

# Queries: copies.
for t in ["{t.name | at(t:barrel, p:place)}", "{t.name + ' ' | at(t:cargo, p:place)}", "{t.name + ' ' | at(t:thing, p:place)}", "{t.name + ' ' | at(t:object, p:object)}",
          "{p.name + ';' | road(p:place, q:place)}", "{q.name|road(p:place,q:place)}", "{#y# | at(t:barrel, p:place)}", "{#y#| at(t:barrel, p:place)}.",
          "{#none# | snow()}", "{t.name | snow()}", "a {t.name | at(t:boat, p:place)} b", "{'x' | night()}", "{'x' | night() & wet(p:place)}",
          "{t.name\n| at(t:boat, p:place)}", "{t.name |\nat(t:boat, p:place)}", "{t.name | at(t:boat,\n p:place)}", "{t.name | }", "{t.name | at(t:boat, p:place) | x}",
          "{ | night()}", "{t.name\t|\tat(t:boat, p:place)\t}", "{#y# + 'a' | night()}", "{#y# }", "{#y#}", "{# y# | night()}", "{t.name || night()}",
          "{u.name + '+' + t.name + ' ' | near(t:barrel, u:barrel)}", "{t.name | near(t:barrel, t:barrel)}", "{t.name + ' ' | at(t:barrel, p:place) & heavy(t:barrel)}",
          "{t.name + p.name + ' ' | at(t:barrel, p:place) & road(p:place, q:place) & at(u:boat, p:place)}", "{a.name + b.name + c.name | load(a:boat, b:cargo, c:place)}",
          "{a.name + b.name + c.name + ' ' | load(a:thing, b:thing, c:place)}", "{a.name + b.name + c.name + ' ' | load(a:object, b:object, c:object)}",
          "{t.name + ' ' | in(t:thing, c:thing)}", "{t.name + ' ' | in(t:cargo, c:cargo)}", "{t.name + ' ' | in(t:object, c:cargo)}"]:
    text(t, rules={"y": "[{t.name}] {t.name or 'none'}"})

# Queries: lists.
for t in ["[{t.name | at(t:barrel, p:place)}]", "[{t.name | at(t:boat, p:place)}]", "[{t.name | snow()}]", "[{t.name | at(t:cargo, p:place)}]",
          "[{t.name | at(t:crate, p:place)}]", "[{#y# | at(t:barrel, p:place)}]", "[{'x'}]", "[{#z#}]", "[ {'x'}]", "[{'x'} ]", "[\t{'x'}\t]", "[{'x'}", "['x']", "[]",
          "[{}]", "[[{'x'}]]", "[{'x'}][{'y'}]", "You see [{t.indefinite + ' ' + t.name | at(t:thing, p:place) & wet(q:place)}].", "[{'' | at(t:barrel, p:place)}]",
          "[{#z# | road(p:place, q:place)}]", "a [{t.name | at(t:barrel, p:place)}]\n[{t.name | at(t:boat, p:place)}] b", "[{t.name | at(t:barrel, p:place)}] ; cut"]:
    text(t, rules={"y": "the {t.name} ([{q.name | road(p:place, q:place)}])", "z": "zed"})
text("[{t.name | at(t:barrel, p:place)}]", rules={"list_last_separator": " and "})
text("[{t.name | at(t:barrel, p:place)}]", rules={"list_last_separator": "{' and '}"})
text("[{t.name | at(t:cargo, p:place)}]", rules={"list_separator": "", "list_last_separator": "#y#", "y": "\n"})
text("[{t.name | snow()}]", rules={"list_empty": [("night()", "no light"), "empty"]})
case(block({"x": "[{'a' | snow()}]"}))
case(block({"x": "[{'a' | night()}]"}))
case(block({"x": "[{t.name | at(t:barrel, p:place)}]"}))
case(block({"x": "[{t.name | at(t:cargo, p:place)}]", "list_last_separator": " + "}))

# Queries: what is bound already.
for q in ["at(t:barrel, p:place)", "at(t:barrel, q:place)", "at(u:barrel, p:place)", "at(t:thing, p:place)", "at(t:cargo, p:place)", "at(u:cargo, p:place)",
          "at(u:thing, p:place)", "at(t:object, p:place)", "near(t:barrel, u:barrel)", "near(u:barrel, t:barrel)", "near(t:barrel, t:barrel)",
          "in(t:barrel, u:boat)", "road(p:place, q:place) & road(q:place, p:place)", "road(p:place, q:place)", "not_dry(t:barrel)", "!dry(t:barrel)",
          "!not_heavy(t:barrel)", "dry(t:barrel)", "heavy(u:barrel)"]:
    for bound in [{"t": "b1:barrel", "p": "quay1:place"}, {"t": "b1:cargo", "p": "quay1:place"}, {"t": "b1:object", "p": "quay1:object"}, {"u": "z1:small"}]:
        condition(q, bound=bound)
        if bound is not B and "u" in bound or "object" in str(bound):
            text("[{t.name | " + q + "}]", bound={**bound, **({} if "t" in bound else {"t": "c0:crate"})})
text("{t.name}/{#y# | at(t:crate, q:place)}/{t.name}", bound=B, rules={"y": "{t.name + t.type | heavy(t:crate)}, {t.name}; "})
text("{#y# | at(t:crate, q:place)}", bound=B, rules={"y": "({t.name}{#z# | heavy(t:barrel)})", "z": "<{t.name}{t.name | near(t:barrel, u:barrel)}"})
text("{#y# | at(t:crate, q:place)}", bound=B, rules={"y": "({t.name}{#z# | heavy(t:barrel)})", "z": " {t.name}"})

# Queries: how they are written.
for q in ["night()", "night( )", " night ( ) ", "wet(p:place)", "wet(p: place)", "wet( p : place )", "wet(p :place)&night()", "wet(p:place) &\n night()",
          "wet(p:place) # comment", "# first\nwet(p:place)", "wet(p)", "wet(place)", "wet(place')", "wet(p':place)", "wet(p:place,)", "wet(p:place", "wet p:place",
          "wet(p:place) night()", "wet(p:place) &", "& wet(p:place)", "wet(p:place) | night()", "wet(p:sea)", "wet(p:)", "wet(:place)", "Wet(p:place)", "wet(p:Place)",
          "wet(p:object)", "wet(p:place, q:place)", "wet()", "at(t:barrel, p:place) & heavy(t:crate)", "at(t:barrel, p:place) & heavy(t)", "! wet(p:place)", "!!wet(p:place)",
          "wet(p-q:place)", "is-wet(p:place)", "wet/dry(p:place)", "wet(p:place) & wet(q:place)", "wet(p:place) & wet(p:place)", "at(b:barrel, p:place) & at(c:crate, p:place)",
          "at(b:barrel, p:place) & at(c:barrel, q:place) & road(p:place, q:place)", "wet(p:place)\t", "not_wet(p:place)", "wet(1:place)", "wet(p:place) ;", "snow() & wet(p:nothing)",
          "wet(p:nothing)", "wet(\u00e9:place)"]:
    condition(q)
condition("wet(,p:place)", refused=True)
condition("wet(p:place)", world="empty")
text("[{p.name | wet(p:place)}]", world="empty")

# Documents.
A = 'action Go { template :: "go to {p}"; feedback :: "You go to {p.name}. #x#"; }\n'
X = block({"x": "done", **LISTS})
P = {"p": "quay1:place", "l": "quay2:place"}
for grammar in [A + X, X + A, "# comment\n" + A + "# and\n" + X, A.replace("; ", ";\n# c\n") + X, A.replace("Go", "go") + X, A.replace("Go", "G/o-1").replace("G/o-1", "go"),
                A.replace("}\n", ""), A.replace("template", "Template"), A.replace('"; feedback', '" feedback'), A.replace("feedback", "template"),
                A.replace(' feedback :: "You go to {p.name}. #x#";', ""), A.replace('template :: "go to {p}";', ""),
                A[:-3] + 'pddl :: """(:action go)"""; }\n' + X, A[:-3] + 'pddl :: "(:action go)"; }\n' + X,
                A[:-3] + 'grammar :: """{"x": [{"rhs": "own"}]}"""; }\n', A[:-3] + 'grammar :: """{"x": [{"rhs": "own"}]}"""; }\n' + X, X + A[:-3] + 'grammar :: """{"x": [{"rhs": "own"}]}"""; }\n',
                A[:-3] + 'grammar :: """\n# c\n{"x": [\n   # c\n{"rhs": "own"}]}\n# d""" ; }\n', A[:-3] + 'grammar :: """{"x": # c\n [{"rhs": "own"}]}"""; }\n',
                A[:-3] + 'grammar :: """{}"""; grammar :: """{}"""; }\n' + X, A + A.replace("You go", "You walk") + X, A + A.replace("Go", "GO").replace("You go", "You walk") + X,
                A.replace("action Go {", "action Go{") + X, A.replace("action Go", "actionGo") + X, A.replace("action", "Action") + X, A + X.replace('""";', '"""'),
                A.replace("::", ":") + X, A.replace(" :: ", "::") + X, A.replace("template ::", "template\n::\n") + X, A + "rubbish", A + X + "}", A + 'grammar :: "{}";' + X,
                A.replace("go to {p}", "go to \\n {p}") + X, A.replace("go to {p}", "go\nto {p}") + X, A.replace("go to {p}", " go to {p} ") + X, A.replace("go to {p}", "") + X,
                A.replace("go to {p}", "go to [{q.name | road(p:place, q:place)}]") + X, A.replace("go to {p}", "go to {q.name | road(l:place, q:place)}") + X,
                A.replace("go to {p}", "go #x#; {p}") + X, A.replace("go to {p}", "go to {p.name + l.name}") + X, A.replace("go to {p}", "go to {z}") + X,
                A.replace("go to {p}", "// go\ngo to {p}") + X, A.replace("go to {p}", "go to #p#") + X, "\ufeff" + A + X, "\u00a0" + A + X, A + X + "# last"]:
    for say in ["command go", "feedback go"]:
        case(grammar, say=say, bound=P)
case(A + X, say="command run", bound=P)
for json_text in ["", "{", "[]", "1", "{}", '{"x": {}}', '{"x": "a"}', '{"x": [1]}', '{"x": ["a"]}', '{"x": [{}]}', '{"x": [{"rhs": null}]}', '{"x": [{"rhs": "a"},]}',
                  '{"x": [{"rhs": "a"}],}', '{"x": [{"rhs": "a"}]} {}', '{"x": [{"rhs": "a\nb"}]}', '{"x": [{"rhs": "a\tb"}]}', '{"x": [{"rhs": "a\\u00e9\\ud83d\\ude00b"}]}', '{"x": [{"rhs": "a\\qb"}]}',
                  "{'x': []}", '{"x": [{"rhs": "a", "rhs": "b"}]}', '{"x": [{"rhs": "a"}], "x": [{"rhs": "b"}]}', '{x: []}', '{"x" [{"rhs": "a"}]}', '{"x": [{"rhs": "a", "condition": 1}]}',
                  '{"x": [{"rhs": "a", "weight": 01}]}', '{"x": [{"rhs": "a", "weight": 1.}]}', '{"x": [{"rhs": "a", "weight": -0.5E+2}]}', '{"x": [{"rhs": "a", "weight": nul}]}',
                  '{"x": [{"rhs": "a\\/\\b\\f\\"b"}]}', '# c\n{"x": [{"rhs": "a"}]}', '\u00a0{"x": [{"rhs": "a"}]}', '{"x": [{"rhs": "say \\"it\\" now"}]}']:
    case('grammar :: """' + json_text + '""";')
case('grammar :: """{"x": [{"rhs": "a", "weight": Infinity}]}""";', refused=True)
case('grammar :: """{"x": [{"rhs": 1}]}""";', refused=True)
case('grammar :: """{"x": [{"rhs": "half \\ud83d"}]}""";', refused=True)

# Texts made by chance of what a text can hold, sound or not.
chance = random.Random(20240229)
PARTS = ["{t.name}", "{t.name | at(t:barrel, p:place)}", "[{t.name | at(t:crate, p:place)}]", "#y#", "#z#", "[{#z# | at(u:cargo, p:place)}]", "{#y# | night()}", "word", "two words", " ", "  ", "\t",
         "\n", "//", "// note\n", "\"", "'", "\\", "(", ")", ",", ".", ":", "-"]
ENDS = ["{", "}", "[", "]", "#", "|", ";", "<", ">"]
for _ in range(400):
    parts = [chance.choice(PARTS if chance.random() < 0.96 else ENDS) for _ in range(chance.randint(1, 9))]
    text("".join(parts), bound={**B, "u": "c0:crate"}, rules={"y": chance.choice(["", "why", " \nwhy", "// y\nwhy {t.id}", "{t.id}{p.id}"]), "z": [("heavy(u:cargo)", "heavy {u.id}"), "zed"]})

json.dump({"worlds": WORLDS, "cases": CASES}, sys.stdout, indent=0, ensure_ascii=True, sort_keys=True)
sys.stdout.write("\n")
