//! Steps of a workflow, as commands.
//!
//! In: the YAML of a workflow. Out: its jobs, each with the commands of its `run:` steps and the
//! actions that it uses.

use serde_yaml::Value;

/// One job of a workflow.
#[derive(Debug, Default)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) commands: Vec<Vec<String>>,
    pub(crate) actions: Vec<String>,
    /// Permissions to write, sorted; `None` if the job has those of the workflow.
    pub(crate) writes: Option<Vec<String>>,
}

/// Words of a shell after which a command begins.
const OPENING: [&str; 9] = ["if", "then", "else", "do", "{", "(", "!", "while", "until"];
/// Beginnings of lines that are no command of their own.
const STRUCTURE: [&str; 8] = ["for", "case", "done", "esac", "fi", "}", ")", "#"];

/// Reads the jobs of a workflow.
pub(crate) fn jobs(workflow: &str) -> Vec<Job> {
    let workflow: Value = serde_yaml::from_str(workflow).expect("a workflow is YAML");
    let jobs = workflow["jobs"].as_mapping().expect("a workflow has jobs");
    jobs.iter().map(|(name, job)| read(name.as_str().expect("a name"), job)).collect()
}

/// Permissions to write that a workflow or a job lists.
pub(crate) fn writes(permissions: &Value) -> Option<Vec<String>> {
    if permissions.is_null() {
        return None;
    }
    let listed = permissions.as_mapping().expect("permissions are listed by name");
    let writing = listed.iter().filter(|(_, level)| level.as_str() != Some("read"));
    let mut names: Vec<String> = writing.filter_map(|(name, _)| name.as_str().map(str::to_owned)).collect();
    names.sort();
    Some(names)
}

fn read(name: &str, job: &Value) -> Job {
    let mut read = Job { name: name.to_owned(), writes: writes(&job["permissions"]), ..Job::default() };
    read.actions.extend(job["uses"].as_str().map(str::to_owned));
    for step in job["steps"].as_sequence().into_iter().flatten() {
        read.actions.extend(step["uses"].as_str().map(str::to_owned));
        read.commands.extend(commands(step["run"].as_str().unwrap_or_default()));
    }
    read
}

/// Splits a script into commands, each a list of words. Knows the little of the shell that
/// workflows use.
pub(crate) fn commands(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("\\\n", " ");
    let mut commands = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let first = line.split_whitespace().next().unwrap_or_default();
        // Also commands whose output another one takes.
        let inner = line.split("$(").skip(1).map(|rest| rest.split(')').next().unwrap_or_default());
        let inner: Vec<&str> = inner.filter(|text| !text.starts_with('(')).collect();
        let whole = (!STRUCTURE.contains(&first)).then_some(line);
        for part in whole.into_iter().chain(inner).flat_map(parts) {
            let words =
                part.split_whitespace().skip_while(|word| OPENING.contains(word) || is_assignment(word));
            let words: Vec<String> = words.map(str::to_owned).collect();
            let is_command = words.first().is_some_and(|word| !STRUCTURE.contains(&word.as_str()));
            commands.extend(is_command.then_some(words));
        }
    }
    commands
}

/// Cuts a line where another command begins, but not inside of quotes.
fn parts(line: &str) -> Vec<String> {
    let (mut parts, mut quote) = (vec![String::new()], None);
    for char in line.chars() {
        match quote {
            Some(open) if open == char => quote = None,
            None if char == '"' || char == '\'' => quote = Some(char),
            _ => {}
        }
        if quote.is_none() && "|&;".contains(char) {
            parts.push(String::new());
        } else {
            parts.last_mut().expect("one part").push(char);
        }
    }
    parts
}

/// True for `NAME=VALUE`.
pub(crate) fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name).unwrap_or_default();
    !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

#[test]
fn a_script_falls_into_its_commands() {
    let script = "A=1 make test SEEDS=2 && cp a \\\n  b | tee 'x | y'\n# none\nfor file in *; do\n  cosign sign \"$(crane digest x)\"\n\
        done\n{\n echo x\n} >>out\nif has a; then gh b; fi\n";
    let firsts = |script: &str| -> Vec<String> {
        commands(script).into_iter().map(|words| words[..2.min(words.len())].join(" ")).collect()
    };
    assert_eq!(
        firsts(script),
        ["make test", "cp a", "tee 'x", "cosign sign", "crane digest", "echo x", "has a", "gh b"]
    );
}

#[test]
fn a_job_is_read_with_its_rights() {
    let workflow = "jobs:\n  one:\n    permissions: {contents: read, packages: write}\n    steps:\n      - uses: a/b@c\n      - run: make x\n  \
        two: {uses: ./d.yml}\n";
    let jobs = jobs(workflow);
    assert_eq!((jobs[0].name.as_str(), &jobs[0].writes), ("one", &Some(vec!["packages".to_owned()])));
    assert_eq!(
        (&jobs[0].actions, &jobs[0].commands),
        (&vec!["a/b@c".to_owned()], &vec![vec!["make".to_owned(), "x".to_owned()]])
    );
    assert_eq!((&jobs[1].actions[..], &jobs[1].writes), (&["./d.yml".to_owned()][..], &None));
}
