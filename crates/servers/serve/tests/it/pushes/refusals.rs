//! The models that do not support pushes explain why.

use crate::{
    pushes::chat::Chat,
    server::{Setting, host},
};
use regatta_serve::{Model, ServeError, Stop, serve_members};

#[test]
fn process_models_refuse_with_a_reason_and_an_alternative() {
    for model in [Model::Fork, Model::Prefork] {
        let host = host(&Setting::default(), Stop::new().unwrap());
        let error = serve_members(Chat::default(), model, &host).expect_err(model.name());
        assert!(matches!(error, ServeError::Unsupported { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(model.name()) && text.contains("; use "), "{text}");
    }
}
