"""Sixty wrong calls in Python, each with the way out that its error must say.

An entry is an expression, or statements, and a pattern; None is a call that must work although it
may look wrong. `open_session()` opens a session on `TABLE`.
"""

SETUP = """
import numpy as np
from pathlib import Path
import dpcore
from dpcore import (
    ADD_REMOVE, REPLACE_ONE, Categories, Domain, Ledger, PrivacyBudget, Range, Session,
    load_run, load_spec, price, read_csv, read_parquet, replay, run,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore_linear.staged_gradient import StagedGradient
from dpcore_statistics.count import Count
from dpcore.sklearn import PrivateClassifier, PrivateRegressor

TABLE = {
    "age": [20.0 + i for i in range(40)],
    "income": [25.0 * i for i in range(40)],
    "smoker": ["no", "yes"] * 20,
}
COLUMNS = {"age": Range(18, 100), "income": Range(0, 1000), "smoker": Categories(("no", "yes"))}
DOMAIN = Domain(columns=COLUMNS)
FIT = Domain(columns={"age": Range(18, 100)}, target="income", labels=Range(0, 1000), exact=40)
BUDGET = PrivacyBudget(epsilon=1, delta=1e-6)
X = np.array(TABLE["age"])[:, None]
y = np.array(TABLE["income"])

def open_session(budget=BUDGET, domain=DOMAIN, table=TABLE, **more):
    return Session(budget, domain, table, **more)

def regressor(**more):
    usual = {"columns": (18, 100), "target": (0, 1000), "replay": "here"}
    return PrivateRegressor(**(usual | more))

def priced(**more):
    usual = {"domain": FIT, "adjacency": REPLACE_ONE, "budget": BUDGET}
    usual |= {"learner": StagedGradient(), "mechanism": Gaussian()}
    return price(**(usual | more))
"""

CALLS = (
    # where a budget enters
    ("PrivacyBudget(epsilon='1', delta=1e-6)", "epsilon > 0"),
    ("PrivacyBudget(epsilon=1, delta='small')", "delta that is 0 or"),
    ("PrivacyBudget(epsilon=0, delta=1e-6)", "epsilon > 0"),
    ("PrivacyBudget(epsilon=float('nan'), delta=1e-6)", "epsilon > 0"),
    ("PrivacyBudget(epsilon=1, delta=1)", "delta"),
    ("PrivacyBudget(epsilon=None, delta=0)", "epsilon > 0"),
    ("PrivacyBudget(epsilon=True, delta=0)", "epsilon > 0"),
    ("PrivacyBudget(epsilon=np.float32(1), delta=np.float64(1e-6))", None),
    # what is declared
    ("Categories('FM')", "list"),
    ("Categories(('F',))", "two or more"),
    ("Categories(['F', 'M'])", None),
    ("Categories(5)", "list|tuple"),
    ("Categories(('F', 'M'), default='X')", "default"),
    ("Range(100, 18)", "write .18, 100"),
    ("Range('18', 100)", "finite number"),
    ("Range(None, 100)", "finite number"),
    ("Range(0, float('inf'))", "finite number"),
    ("Range((18, 100), 3)", "finite number"),
    ("Range(np.int64(0), np.float64(3))", None),
    ("Domain(columns={'age': (18, 100)})", r"Range\("),
    ("Domain(columns={'smoker': ['no', 'yes']})", r"Categories\("),
    ("Domain(columns={'smoker': bool})", r"Categories\("),
    ("Domain(columns=['age'])", "Range|mapping"),
    ("Domain(columns=COLUMNS, target='wage', labels=None)", "labels"),
    ("Domain(columns=COLUMNS, exact='40')", "exact.*whole|whole.*exact"),
    ("Domain(columns=COLUMNS, exact=-1)", "exact|>= 1"),
    # a session
    ("open_session(budget=1.0)", "PrivacyBudget"),
    ("open_session(domain=COLUMNS)", r"Domain"),
    ("open_session(table='people.csv')", r"read_csv"),
    ("open_session(table=Path('people.csv'))", r"read_csv"),
    ("open_session(table=np.zeros((40, 3)))", "by name"),
    ("open_session(table=None)", "by name"),
    ("open_session(table={'age': TABLE['age']})", "'income'.*(declare|rename)"),
    ("open_session(table={**TABLE, 'age': [300.0] * 40})", "on_invalid|project"),
    ("open_session(table={**TABLE, 'smoker': [True, False] * 20})", "on_invalid"),
    ("open_session(table={**TABLE, 'age': [20.0]})", "length|records|as many"),
    ("open_session(adjacency='replace_one', domain=attrs_evolve(DOMAIN, exact=40))", None),
    ("open_session(adjacency='replace_won')", "'replace_one'|ADD_REMOVE"),
    ("open_session(on_invalid='drop')", "refuse or project"),
    ("open_session(expected='many')", "expected"),
    # a question
    ("open_session().count(epsilon='0.1')", "epsilon > 0|number"),
    ("open_session().count(epsilon=-1)", "epsilon > 0"),
    ("open_session().count(epsilon=np.float64(0.1))", None),
    ("open_session().count()", "epsilon"),
    ("open_session().count(0.1)", r"Session.count\(\).*epsilon"),
    ("open_session().mean('incom', epsilon=0.1)", "'income'"),
    ("open_session().mean('smoker', epsilon=0.1)", "range.*(age|income)"),
    ("open_session().mean(['age'], epsilon=0.1)", "column.*(name|text)|one column"),
    ("open_session().mean('age', epsilon=0.1, wher={})", "'where'"),
    ("open_session().count(epsilon=0.1, where={'smoker': 'yes'})", None),
    ("open_session().count(epsilon=0.1, where={'smoker': ['maybe']})", "no, yes|'yes'|'no'"),
    ("open_session().quantiles('age', 50, epsilon=0.1)", "quantile"),
    ("open_session().histogram('age', epsilon=0.1)", "edges"),
    ("open_session().group_by('smokr', epsilon=0.1)", "'smoker'"),
    ("open_session().count(epsilon=5)", "epsilon = [01]?\\.\\d+"),
    ("s = open_session(); s.count(epsilon=0.9); s.count(epsilon=0.9)", "epsilon = 0?\\.\\d+"),
    ("open_session().fit('linear.staged_gradient', epsilon=0.5)", "learner"),
    ("open_session().fit(StagedGradient, epsilon=0.5)", r"StagedGradient\("),
    ("open_session().fit(Count(), epsilon=0.5)", "release"),
    ("open_session().release(Count(), epsilon=0.5, mechanism='gaussian')", "mechanism"),
    ("open_session().fit(StagedGradient(), epsilon=0.5)", "records: N|target"),
    # a plan, a run, a file
    ("priced(adjacency='replace_one')", None),
    ("priced(budget=(1, 1e-6))", "PrivacyBudget"),
    ("priced(learner='linear.staged_gradient')", "learner"),
    ("priced(mechanism='gaussian')", "mechanism"),
    ("priced(mechanism=Exponential())", "l2|gaussian"),
    ("priced().run('people.csv')", "read_csv"),
    ("run('nowhere.yaml')", "no such file"),
    ("run('people.csv')", "spec"),
    ("run('s.yaml', table=5)", "by name|columns"),
    ("load_run('s.yaml')", "run folder"),
    ("load_run('nowhere')", "run folder"),
    ("load_spec(None)", "path|file"),
    ("read_csv('people.csv', delimiter=';;')", "one character"),
    ("read_csv(None)", "path"),
    ("read_csv({'age': [1]})", "path"),
    ("open_session(table=read_csv('nowhere.csv'))", "no such file"),
    ("load_run(None)", "run folder"),
    ("priced(releases=[StagedGradient()], learner=None, mechanism=None)", "Release"),
    ("Domain(columns=COLUMNS, people='id')", r"People\(column"),
    ("Domain(columns=COLUMNS, norm='1')", "norm > 0"),
    ("Ledger.open(5)", "name of letters"),
    ("Ledger.open('nobody')", "dpcore ledger create"),
    ("Ledger.create('new', epsilon='1', delta=1e-6, adjacency=ADD_REMOVE)", "epsilon"),
    ("Ledger.create('new', epsilon=1, delta=1e-6, adjacency='person')", "person|ADD_REMOVE"),
    ("dpcore.Sesion", "'Session'"),
    ("dpcore.Rnage", "'Range'"),
    # estimators
    ("regressor(columns=None).fit(X, y)", "columns="),
    ("regressor(target=None).fit(X, y)", "target"),
    ("regressor(epsilon='1').fit(X, y)", "epsilon > 0"),
    ("regressor(epsilon=-1).fit(X, y)", "epsilon > 0"),
    ("regressor(learner='tables.shape_function').fit(X, y)", "'tables.shape_functions'"),
    ("regressor(columns=(30, 40)).fit(X, y)", "on_invalid"),
    ("regressor(on_invalid='drop').fit(X, y)", "refuse or project"),
    ("regressor(adjacency='replace_won').fit(X, y)", "replace_one|ADD_REMOVE|REPLACE_ONE"),
    ("regressor().fit(X, y[:3])", "inconsistent|as many|length|records"),
    ("regressor().predict(X)", "fit"),
    ("regressor(epsilom=1)", "epsilon|epsilom"),
    ("PrivateClassifier(columns=(18, 100)).fit(X, y > 500)", "classes"),
)  # fmt: skip
