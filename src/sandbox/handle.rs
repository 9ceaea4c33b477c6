//! From a request to its answer.
//!
//! In: an [`Ask`]. Out: an [`Answer`]. Here is decided which handler a path and a method mean, and nothing else.

use http::Method;
use serde_json::Value;

use super::answer::Answer;
use super::ask::{Ask, Objects, Place};
use super::discovery;
use super::follow::Follow;
use super::openapi;
use super::refusal::Refusal;
use super::reviews;
use super::state::State;
use super::store::Key;
use super::write::{Target, Wish};
use super::{Sandbox, answer::Body};

impl Sandbox {
    /// Answers a request.
    pub(crate) fn handle(&self, ask: &Ask) -> Answer {
        self.try_handle(ask).unwrap_or_else(Answer::from)
    }

    fn try_handle(&self, ask: &Ask) -> Result<Answer, Refusal> {
        match &ask.place {
            Place::Health => Ok(Answer::word("ok")),
            Place::Version => Ok(Answer::json(200, &discovery::version())),
            // An empty document in the form that kubectl asks for; what it wants to know stands in the newer one.
            Place::OldOpenApi => Ok(Answer { content: openapi::OLD_FORM, ..Answer::text(200, Vec::new()) }),
            Place::Objects(objects) => self.objects(ask, objects),
            Place::Unknown => Err(Refusal::no_such_path()),
            Place::Groups { .. } | Place::Group { .. } | Place::Resources { .. } | Place::OpenApi { .. } => {
                let state = self.state();
                let told = told(&state, ask).ok_or_else(Refusal::no_such_path)?;
                let answer = Answer::json(200, &told);
                // By this a client knows that it got what it asked for.
                let is_aggregated = told["kind"] == "APIGroupDiscoveryList";
                Ok(Answer {
                    content: if is_aggregated { discovery::AGGREGATED } else { answer.content },
                    ..answer
                })
            }
        }
    }

    fn objects(&self, ask: &Ask, objects: &Objects) -> Result<Answer, Refusal> {
        let mut state = self.state();
        if let Some(answer) = reviews::review(ask, objects)? {
            return Ok(answer);
        }
        let found = state.served.find(&objects.group, &objects.version, &objects.plural);
        let Some((resource, version)) = found else {
            return Ok(nothing_at(&state, objects));
        };
        super::options::check(ask)?;
        let target = Target::new(resource, version, objects);
        // An object by its name is read, however it is asked for.
        if ask.method == Method::GET && ask.is_watch() && target.key.name.is_empty() {
            drop(state);
            return self.watch(&target, ask);
        }
        match target.subresource.as_str() {
            "" => {}
            "scale" if target.served().scale.is_some() => return scale(&mut state, &target, ask),
            "status" if target.served().has_status => {}
            "finalize" if &*target.resource.kind == "Namespace" => {}
            // Whoever serves custom resources knows no other parts than these.
            _ if target.resource.builtin().is_none() => return Err(Refusal::not_found(target.about())),
            _ => return Err(Refusal::no_such_path()),
        }
        let named = !target.key.name.is_empty();
        if named && target.resource.namespaced && target.key.namespace.is_empty() {
            return Err(Refusal::no_such_path());
        }
        let body = || ask.body()?.ok_or_else(|| Refusal::bad_request("the request has no body"));
        match (&ask.method, named) {
            (&Method::GET, true) => state.get(&target, ask),
            (&Method::GET, false) => state.list(&target, ask),
            (&Method::POST, false) => Ok(state.create(target, ask, body()?)?.answer()),
            (&Method::PUT, true) => Ok(state.update(&target, ask, body()?)?.answer()),
            (&Method::PATCH, true) => Ok(state.patch(&target, ask, body()?)?.answer()),
            (&Method::DELETE, true) => state.delete(&target, &Wish::of(ask)?),
            (&Method::DELETE, false) => delete_all(&mut state, &target, ask),
            _ => Err(Refusal::method_not_allowed()),
        }
    }

    fn watch(&self, target: &Target, ask: &Ask) -> Result<Answer, Refusal> {
        let follow = Follow::open(self.shared(), self.faults(), target, ask)?;
        let answer = Answer::text(200, Vec::new());
        Ok(Answer { body: Body::Goes(Box::new(follow)), ..answer })
    }
}

/// In a group of Kubernetes' own a resource is missing; in any other there is no place at all.
fn nothing_at(state: &State, objects: &Objects) -> Answer {
    match state.served.iter().any(|it| *it.group == *objects.group && it.builtin().is_some()) {
        true => Answer::from(Refusal::no_such_path()),
        false => Answer { code: 404, ..Answer::word("404 page not found\n") },
    }
}

fn told(state: &State, ask: &Ask) -> Option<Value> {
    let served = &state.served;
    match &ask.place {
        Place::Groups { core } if ask.wants_aggregated() => Some(discovery::aggregated(served, *core)),
        Place::Groups { core: true } => Some(discovery::core_versions()),
        Place::Groups { core: false } => Some(discovery::group_list(served)),
        Place::Group { group } => discovery::group(served, group),
        Place::Resources { group, version } => discovery::resource_list(served, group, version),
        Place::OpenApi { group_version } if group_version.is_empty() => Some(openapi::index(served)),
        Place::OpenApi { group_version } => openapi::document(served, group_version),
        Place::Health | Place::Version | Place::OldOpenApi | Place::Objects(_) | Place::Unknown => None,
    }
}

fn scale(state: &mut State, target: &Target, ask: &Ask) -> Result<Answer, Refusal> {
    match ask.method {
        Method::GET => Ok(Answer::json(200, &state.scale(target)?)),
        Method::PUT | Method::PATCH => {
            let body = ask.body()?.ok_or_else(|| Refusal::bad_request("the request has no body"))?;
            Ok(state.rescale(target, ask, &body)?.answer())
        }
        _ => Err(Refusal::method_not_allowed()),
    }
}

/// Deletes what a list would show, and tells it as it was.
fn delete_all(state: &mut State, target: &Target, ask: &Ask) -> Result<Answer, Refusal> {
    let wish = Wish::of(ask)?;
    let view = super::look::View::new(target, ask)?;
    let (told, found) = (state.list(target, ask)?, state.found(&view));
    for stored in found {
        let key = Key::new(&stored.key.namespace, &stored.key.name);
        let one = Target { key, resource: target.resource.clone(), subresource: String::new(), ..*target };
        state.delete(&one, &wish)?;
    }
    Ok(told)
}
