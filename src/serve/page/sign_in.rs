//! Pages around signing in and out.
//!
//! In: a title, sentences, and one action. Out: a document that works without a script.

use super::html::Html;
use super::layout::{LiveUpdates, begin_page};
use super::routes::Link;

/// The action that a page offers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SignInAction<'a> {
    /// A link to a path of the console, with the path that follows it.
    SignIn(&'a str),
    /// A form that ends the session.
    SignOut,
}

/// Renders a page around signing in.
pub(crate) fn sign_in_page(title: &str, sentences: &[&str], action: SignInAction<'_>) -> String {
    let mut html: Html = begin_page(&format!("{title} · Moorline"), LiveUpdates::Off);
    html.element("h1", &[], title);
    for sentence in sentences {
        html.element("p", &[], sentence);
    }
    match action {
        SignInAction::SignIn(next) => {
            html.open("p", &[]);
            html.link(&Link::file("/login/start").with_query(&[("next", next)]), &[], "Sign in");
            html.close();
        }
        SignInAction::SignOut => {
            html.open("form", &[("method", "post"), ("action", "/logout")]);
            html.element("button", &[("type", "submit")], "Sign out");
            html.close();
        }
    }
    html.finish()
}
