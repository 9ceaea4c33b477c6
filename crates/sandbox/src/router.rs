//! Routes a request to its handler.
//!
//! In: an [`ApiRequest`].
//! Out: an [`ApiResponse`]. Only the choice of the handler by path and method is made here.

use http::{HeaderMap, Method};
use serde_json::Value;

use super::Sandbox;
use super::convert::ConversionCache;
use super::discovery;
use super::kinds;
use super::openapi;
use super::state::ServerState;
use super::store::Key;
use super::write::{DeleteOptions, RequestTarget};
use crate::access_review;
use crate::request::{ApiRequest, Endpoint, ObjectPath};
use crate::response::ApiResponse;
use crate::response::Body;
use crate::status_error::StatusError;
use crate::watch::WatchStream;

/// Maximum number of attempts of a request that needs conversion webhooks.
const MAX_ATTEMPTS: usize = 64;

impl Sandbox {
    /// Answers a request.
    pub(crate) async fn handle(&self, ask: &ApiRequest) -> ApiResponse {
        self.try_handle(ask).await.unwrap_or_else(ApiResponse::from)
    }

    /// Returns the revision of an object by its path, without parsing the object; `None` if it does
    /// not exist.
    pub fn revision(&self, path: &str) -> Option<u64> {
        let ask = ApiRequest::new(Method::GET, &path.parse().ok()?, HeaderMap::new(), Vec::new());
        let Endpoint::Objects(objects) = &ask.endpoint else { return None };
        let state = self.state();
        let (resource, version) = state.registry.find(&objects.group, &objects.version, &objects.plural)?;
        let target = RequestTarget::new(resource, version, objects);
        state.store.get(&target.resource.storage_key, &target.key).map(|stored| stored.revision)
    }

    async fn try_handle(&self, ask: &ApiRequest) -> Result<ApiResponse, StatusError> {
        match &ask.endpoint {
            Endpoint::Health => Ok(ApiResponse::plain_text("ok")),
            Endpoint::Version => Ok(ApiResponse::json(200, &discovery::version())),
            // An empty document of the type that kubectl asks for; kubectl finds the schemas in
            // OpenAPI v3.
            Endpoint::OldOpenApi => {
                Ok(ApiResponse { content: openapi::OLD_FORM, ..ApiResponse::text(200, Vec::new()) })
            }
            Endpoint::Objects(objects) => {
                let answer = self.objects(ask, objects).await.unwrap_or_else(ApiResponse::from);
                Ok(answer.warning_first(kinds::deprecation(&objects.group, &objects.plural)))
            }
            Endpoint::Unknown => Err(StatusError::no_such_path()),
            Endpoint::Groups { .. }
            | Endpoint::Group { .. }
            | Endpoint::Resources { .. }
            | Endpoint::OpenApi { .. } => {
                let state = self.state();
                let told = discovery_document(&state, ask).ok_or_else(StatusError::no_such_path)?;
                let answer = ApiResponse::json(200, &told);
                // By this content type the client recognizes aggregated discovery.
                let is_aggregated = told["kind"] == "APIGroupDiscoveryList";
                Ok(ApiResponse {
                    content: if is_aggregated { discovery::AGGREGATED } else { answer.content },
                    ..answer
                })
            }
        }
    }

    async fn objects(&self, ask: &ApiRequest, objects: &ObjectPath) -> Result<ApiResponse, StatusError> {
        if reaches_containers(ask, objects) {
            return Err(StatusError::no_containers());
        }
        let is_collection = objects.name.is_none();
        // A GET of a single object is no watch, even with `watch=true`.
        if ask.method == Method::GET && ask.is_watch() && is_collection {
            let open = |state: &mut ServerState| match resolve_target(state, ask, objects)? {
                Err(answer) => Ok(answer),
                Ok(target) => {
                    let follow = WatchStream::open(state, self.shared(), self.faults(), &target, ask)?;
                    Ok(ApiResponse {
                        body: Body::Watch(Box::new(follow)),
                        ..ApiResponse::text(200, Vec::new())
                    })
                }
            };
            return self.retry_until_converted(open).await;
        }
        if ask.only_watches {
            return Err(StatusError::method_not_allowed());
        }
        if ask.method == Method::DELETE && is_collection {
            return self.delete_all(ask, objects).await;
        }
        self.retry_until_converted(|state| handle_resource(state, ask, objects)).await
    }

    /// Retries until all conversions are known that an attempt needs. The result of an attempt with
    /// missing conversions is discarded, and that attempt has written nothing: see
    /// `convert/mod.rs`.
    async fn retry_until_converted<T>(
        &self,
        mut attempt: impl FnMut(&mut ServerState) -> Result<T, StatusError>,
    ) -> Result<T, StatusError> {
        let mut conversions = ConversionCache::of_request();
        for _ in 0..MAX_ATTEMPTS {
            let answer = {
                let mut state = self.state();
                std::mem::swap(&mut state.conversions, &mut conversions);
                let answer = attempt(&mut state);
                std::mem::swap(&mut state.conversions, &mut conversions);
                answer
            };
            if !conversions.has_pending() {
                return answer;
            }
            conversions.call_pending().await;
        }
        Err(StatusError::busy())
    }

    /// Deletes all objects that a list would show, and returns the list as it was before.
    async fn delete_all(&self, ask: &ApiRequest, objects: &ObjectPath) -> Result<ApiResponse, StatusError> {
        let wish = DeleteOptions::from_request(ask)?;
        let found = |state: &mut ServerState| match resolve_target(state, ask, objects)? {
            Err(answer) => Ok((answer, Vec::new())),
            Ok(target) => {
                let view = crate::get_list::ListView::new(&target, ask)?;
                let (told, found) = (state.list(&target, ask)?, state.find_objects(&view)?);
                let one = |key: Key| {
                    let resource = target.resource.clone();
                    RequestTarget { key, resource, subresource: String::new(), ..target }
                };
                Ok((told, found.into_iter().map(|stored| one(stored.key.clone())).collect()))
            }
        };
        let (told, targets) = self.retry_until_converted(found).await?;
        for target in targets {
            self.retry_until_converted(|state| state.delete(&target, &wish)).await?;
        }
        Ok(told)
    }
}

/// True for a request to a container in a Pod, such as logs or exec. The kubectl command is checked
/// as well: with no Pod there, kubectl would wait for one.
fn reaches_containers(ask: &ApiRequest, objects: &ObjectPath) -> bool {
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
fn resolve_target(
    state: &ServerState,
    ask: &ApiRequest,
    objects: &ObjectPath,
) -> Result<Result<RequestTarget, ApiResponse>, StatusError> {
    if let Some(answer) = access_review::review(ask, objects)? {
        return Ok(Err(answer));
    }
    let found = state.registry.find(&objects.group, &objects.version, &objects.plural);
    let Some((resource, version)) = found else {
        return Ok(Err(nothing_at(state, objects)));
    };
    crate::request_options::check(ask)?;
    Ok(Ok(RequestTarget::new(resource, version, objects)))
}

/// Answers a request for one object, a list, a subresource, or a new object.
fn handle_resource(
    state: &mut ServerState,
    ask: &ApiRequest,
    objects: &ObjectPath,
) -> Result<ApiResponse, StatusError> {
    let target = match resolve_target(state, ask, objects)? {
        Ok(target) => target,
        Err(answer) => return Ok(answer),
    };
    match target.subresource.as_str() {
        "" => {}
        "scale" if target.served().scale.is_some() => return scale(state, &target, ask),
        "status" if target.served().has_status => {}
        "finalize" if &*target.resource.kind == "Namespace" => {}
        // Custom resources have no other subresources than these.
        _ if target.resource.builtin().is_none() => return Err(StatusError::not_found(target.about())),
        _ => return Err(StatusError::no_such_path()),
    }
    let named = !target.key.name.is_empty();
    if named && target.resource.namespaced && target.key.namespace.is_empty() {
        return Err(StatusError::no_such_path());
    }
    let body = || ask.body()?.ok_or_else(|| StatusError::bad_request("the request has no body"));
    match (&ask.method, named) {
        (&Method::GET, true) => state.get(&target, ask),
        (&Method::GET, false) => state.list(&target, ask),
        (&Method::POST, false) => Ok(state.create(target, ask, body()?)?.answer()),
        (&Method::PUT, true) => Ok(state.update(&target, ask, body()?)?.answer()),
        (&Method::PATCH, true) => Ok(state.patch(&target, ask, body()?)?.answer()),
        (&Method::DELETE, true) => state.delete(&target, &DeleteOptions::from_request(ask)?),
        _ => Err(StatusError::method_not_allowed()),
    }
}

/// Returns the 404 response: a `Status` for a built-in group, plain text for a group that is not
/// served.
fn nothing_at(state: &ServerState, objects: &ObjectPath) -> ApiResponse {
    match state.registry.iter().any(|it| *it.group == *objects.group && it.builtin().is_some()) {
        true => ApiResponse::from(StatusError::no_such_path()),
        false => ApiResponse { code: 404, ..ApiResponse::plain_text("404 page not found\n") },
    }
}

fn discovery_document(state: &ServerState, ask: &ApiRequest) -> Option<Value> {
    let served = &state.registry;
    match &ask.endpoint {
        Endpoint::Groups { core } if ask.wants_aggregated() => Some(discovery::aggregated(served, *core)),
        Endpoint::Groups { core: true } => Some(discovery::core_versions()),
        Endpoint::Groups { core: false } => Some(discovery::group_list(served)),
        Endpoint::Group { group } => discovery::group(served, group),
        Endpoint::Resources { group, version } => discovery::resource_list(served, group, version),
        Endpoint::OpenApi { group_version } if group_version.is_empty() => Some(openapi::index(served)),
        Endpoint::OpenApi { group_version } => openapi::document(served, group_version),
        Endpoint::Health
        | Endpoint::Version
        | Endpoint::OldOpenApi
        | Endpoint::Objects(_)
        | Endpoint::Unknown => None,
    }
}

fn scale(
    state: &mut ServerState,
    target: &RequestTarget,
    ask: &ApiRequest,
) -> Result<ApiResponse, StatusError> {
    match ask.method {
        Method::GET => Ok(ApiResponse::json(200, &state.scale(target)?)),
        Method::PUT | Method::PATCH => {
            let body = ask.body()?.ok_or_else(|| StatusError::bad_request("the request has no body"))?;
            Ok(state.rescale(target, ask, &body)?.answer())
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}
