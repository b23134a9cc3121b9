//! A test for each property and model, so that they run at once and a failure names its model.

use regatta_serve::Model;
use regatta_testkit::skip;

/// Checks a property of a model, if the kernel can run the model.
pub fn check(model: Model, property: fn(Model)) {
    match model.refused() {
        Some(why) => skip(&format!("{}: {why}", model.name())),
        None => property(model),
    }
}

/// Makes a test of `property(model)` for each of these models.
macro_rules! tests_of {
    ($property:ident: $($test:ident $model:ident),*) => {
        mod $property {
            $(#[test]
            fn $test() {
                $crate::models::check(regatta_serve::Model::$model, super::$property);
            })*
        }
    };
}

/// Makes tests of properties of each model that runs sessions which push, except `cluster`.
macro_rules! on_pushing_models {
    ($($property:ident),* $(,)?) => {
        $($crate::models::tests_of!($property: threads Threads, green Green, select Select, poll Poll,
            epoll Epoll, percore Percore, uring Uring, async_ Async);)*
    };
}

/// Makes tests of properties of each model that runs engines.
#[allow(unused_macros, reason = "not part of the full tier")]
macro_rules! on_engine_models {
    ($($property:ident),* $(,)?) => {
        $($crate::models::tests_of!($property: select Select, poll Poll, epoll Epoll, percore Percore,
            uring Uring);)*
    };
}

#[allow(unused_imports, reason = "not part of the full tier")]
pub(crate) use {on_engine_models, on_pushing_models, tests_of};
