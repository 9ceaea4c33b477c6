//! Routes a request to its handler.
//!
//! In: an [`ApiRequest`].
//! Out: an [`ApiResponse`]. Only the choice of the handler by path and method is made here.

use http::{HeaderMap, Method};
use serde_json::Value;

use super::answer::Answer;
use super::ask::{Ask, Objects, Place};
use super::convert::Conversions;
use super::discovery;
use super::follow::Follow;
use super::kinds;
use super::openapi;
use super::refusal::Refusal;
use super::reviews;
use super::state::State;
use super::store::Key;
use super::write::{Target, Wish};
use super::{Sandbox, answer::Body};

/// Maximum number of attempts of a request that needs conversion webhooks.
const MAX_ATTEMPTS: usize = 64;

impl Sandbox {
    /// Answers a request.
    pub(crate) async fn handle(&self, ask: &Ask) -> Answer {
        self.try_handle(ask).await.unwrap_or_else(Answer::from)
    }

    /// Returns the revision of an object by its path, without parsing the object; `None` if it does
    /// not exist.
    pub fn version(&self, path: &str) -> Option<u64> {
        let ask = Ask::new(Method::GET, &path.parse().ok()?, HeaderMap::new(), Vec::new());
        let Place::Objects(objects) = &ask.place else { return None };
        let state = self.state();
        let (resource, version) = state.served.find(&objects.group, &objects.version, &objects.plural)?;
        let target = Target::new(resource, version, objects);
        state.store.get(&target.resource.home, &target.key).map(|stored| stored.revision)
    }

    async fn try_handle(&self, ask: &Ask) -> Result<Answer, Refusal> {
        match &ask.place {
            Place::Health => Ok(Answer::word("ok")),
            Place::Version => Ok(Answer::json(200, &discovery::version())),
            // An empty document of the type that kubectl asks for; kubectl finds the schemas in
            // OpenAPI v3.
            Place::OldOpenApi => Ok(Answer { content: openapi::OLD_FORM, ..Answer::text(200, Vec::new()) }),
            Place::Objects(objects) => {
                let answer = self.objects(ask, objects).await.unwrap_or_else(Answer::from);
                Ok(answer.warning_first(kinds::deprecation(&objects.group, &objects.plural)))
            }
            Place::Unknown => Err(Refusal::no_such_path()),
            Place::Groups { .. } | Place::Group { .. } | Place::Resources { .. } | Place::OpenApi { .. } => {
                let state = self.state();
                let told = told(&state, ask).ok_or_else(Refusal::no_such_path)?;
                let answer = Answer::json(200, &told);
                // By this content type the client recognizes aggregated discovery.
                let is_aggregated = told["kind"] == "APIGroupDiscoveryList";
                Ok(Answer {
                    content: if is_aggregated { discovery::AGGREGATED } else { answer.content },
                    ..answer
                })
            }
        }
    }

    async fn objects(&self, ask: &Ask, objects: &Objects) -> Result<Answer, Refusal> {
        if reaches_containers(ask, objects) {
            return Err(Refusal::no_containers());
        }
        let is_collection = objects.name.is_none();
        // A GET of a single object is no watch, even with `watch=true`.
        if ask.method == Method::GET && ask.is_watch() && is_collection {
            let open = |state: &mut State| match target(state, ask, objects)? {
                Err(answer) => Ok(answer),
                Ok(target) => {
                    let follow = Follow::open(state, self.shared(), self.faults(), &target, ask)?;
                    Ok(Answer { body: Body::Goes(Box::new(follow)), ..Answer::text(200, Vec::new()) })
                }
            };
            return self.settle(open).await;
        }
        if ask.only_watches {
            return Err(Refusal::method_not_allowed());
        }
        if ask.method == Method::DELETE && is_collection {
            return self.delete_all(ask, objects).await;
        }
        self.settle(|state| one(state, ask, objects)).await
    }

    /// Retries until all conversions are known that an attempt needs. The result of an attempt with
    /// missing conversions is discarded, and that attempt has written nothing: see
    /// `convert/mod.rs`.
    async fn settle<T>(
        &self,
        mut attempt: impl FnMut(&mut State) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut conversions = Conversions::of_request();
        for _ in 0..MAX_ATTEMPTS {
            let answer = {
                let mut state = self.state();
                std::mem::swap(&mut state.conversions, &mut conversions);
                let answer = attempt(&mut state);
                std::mem::swap(&mut state.conversions, &mut conversions);
                answer
            };
            if !conversions.awaits() {
                return answer;
            }
            conversions.ask().await;
        }
        Err(Refusal::busy())
    }

    /// Deletes all objects that a list would show, and returns the list as it was before.
    async fn delete_all(&self, ask: &Ask, objects: &Objects) -> Result<Answer, Refusal> {
        let wish = Wish::of(ask)?;
        let found = |state: &mut State| match target(state, ask, objects)? {
            Err(answer) => Ok((answer, Vec::new())),
            Ok(target) => {
                let view = super::look::View::new(&target, ask)?;
                let (told, found) = (state.list(&target, ask)?, state.found(&view)?);
                let one = |key: Key| {
                    let resource = target.resource.clone();
                    Target { key, resource, subresource: String::new(), ..target }
                };
                Ok((told, found.into_iter().map(|stored| one(stored.key.clone())).collect()))
            }
        };
        let (told, targets) = self.settle(found).await?;
        for target in targets {
            self.settle(|state| state.delete(&target, &wish)).await?;
        }
        Ok(told)
    }
}

/// True for a request to a container in a Pod, such as logs or exec. The kubectl command is checked
/// as well: with no Pod there, kubectl would wait for one.
fn reaches_containers(ask: &Ask, objects: &Objects) -> bool {
    if !(objects.group.is_empty() && objects.plural == "pods") {
        return false;
    }
    let command = ask.command().and_then(|command| command.split(' ').nth(1)).unwrap_or_default();
    ["logs", "exec", "attach", "port-forward", "cp", "debug"].contains(&command)
        || objects
            .subresource
            .as_deref()
            .is_some_and(|part| ["log", "exec", "attach", "portforward"].contains(&part))
}

/// Resolves a path; returns a response instead if the path does not exist or names a review, which
/// is not persisted.
fn target(state: &State, ask: &Ask, objects: &Objects) -> Result<Result<Target, Answer>, Refusal> {
    if let Some(answer) = reviews::review(ask, objects)? {
        return Ok(Err(answer));
    }
    let found = state.served.find(&objects.group, &objects.version, &objects.plural);
    let Some((resource, version)) = found else {
        return Ok(Err(nothing_at(state, objects)));
    };
    super::options::check(ask)?;
    Ok(Ok(Target::new(resource, version, objects)))
}

/// Answers a request for one object, a list, a subresource, or a new object.
fn one(state: &mut State, ask: &Ask, objects: &Objects) -> Result<Answer, Refusal> {
    let target = match target(state, ask, objects)? {
        Ok(target) => target,
        Err(answer) => return Ok(answer),
    };
    match target.subresource.as_str() {
        "" => {}
        "scale" if target.served().scale.is_some() => return scale(state, &target, ask),
        "status" if target.served().has_status => {}
        "finalize" if &*target.resource.kind == "Namespace" => {}
        // Custom resources have no other subresources than these.
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
        _ => Err(Refusal::method_not_allowed()),
    }
}

/// Returns the 404 response: a `Status` for a built-in group, plain text for a group that is not
/// served.
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
