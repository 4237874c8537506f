"""One private learner for tables: shape functions of private ranks, for numbers and classes."""

provides = {
    "learners": {"tables.shape_functions": "dpcore_tables.shape_functions:ShapeFunctions"},
    "examples": {"tables.*": "examples/*.yaml"},
    "estimators": {
        "ShapeClassifier": "dpcore_tables.estimators:ShapeClassifier",
        "ShapeRegressor": "dpcore_tables.estimators:ShapeRegressor",
    },
}
