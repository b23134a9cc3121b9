//! What `regatta fleet manifest` prints, for Kubernetes and for Slurm.

use crate::support::{regatta, run, until};
use regatta_testkit::{child::Ended, prerequisite, skip};
use serde_json::{Value, json};
use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;
use yaml_rust2::{Yaml, YamlLoader};

fn regatta(args: &[&str]) -> Ended {
    run(regatta!("").args(args))
}

/// The files of a fleet with the agents gen1 and gen2, whose broker does not exist, in a folder with this name.
struct Files {
    folder: TempDir,
    path: PathBuf,
}

impl Files {
    fn new(name: &str) -> Files {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        let files = Files { folder, path };
        let args = ["fleet", "init", "--broker", "broker.invalid", "--agents", "gen1,gen2"];
        let written = regatta(&[&args[..], &[files.dir()]].concat());
        assert_eq!(written.code(), 0, "{written:?}");
        files
    }

    fn dir(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap()
    }

    /// Runs `regatta fleet manifest`.
    fn manifest(&self, scheduler: &str, more: &[&str]) -> Ended {
        let args = ["fleet", "manifest", scheduler, self.dir(), "--targets", "10.0.0.0/24:80"];
        regatta(&[&args[..], more].concat())
    }

    /// The Secret and the Job for Kubernetes.
    fn kubernetes(&self, more: &[&str]) -> [Value; 2] {
        let args = ["--image", "registry.example/regatta:0.1.0", "--cpus", "4"];
        let printed = self.manifest("kubernetes", &[&args[..], more].concat());
        assert_eq!((printed.code(), printed.stderr.as_str()), (0, ""), "{printed:?}");
        let documents = YamlLoader::load_from_str(&printed.stdout).unwrap();
        let documents: Vec<Value> = documents.iter().map(json_of).collect();
        documents.try_into().unwrap()
    }

    fn slurm(&self, more: &[&str]) -> String {
        let printed = self.manifest("slurm", more);
        assert_eq!((printed.code(), printed.stderr.as_str()), (0, ""), "{printed:?}");
        printed.stdout
    }
}

fn json_of(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Hash(hash) => {
            let pairs =
                hash.iter().map(|(key, value)| (key.as_str().unwrap().into(), json_of(value)));
            Value::Object(pairs.collect())
        }
        Yaml::Array(list) => list.iter().map(json_of).collect(),
        Yaml::String(text) => json!(text),
        Yaml::Integer(number) => json!(number),
        Yaml::Boolean(is_true) => json!(is_true),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_job_has_a_pod_for_each_agent_on_a_node_of_its_own() {
    let [_, job] = Files::new("fleet").kubernetes(&["--time", "90m", "--max-rate", "5k/s"]);
    let spec = &job["spec"];
    assert_eq!(spec["completionMode"], "Indexed");
    assert_eq!([&spec["completions"], &spec["parallelism"], &spec["backoffLimit"]], [2, 2, 0]);
    assert_eq!(spec["activeDeadlineSeconds"], 90 * 60);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    let apart =
        &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(apart["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(
        apart["labelSelector"]["matchLabels"], spec["template"]["metadata"]["labels"],
        "the pods are apart from each other"
    );
    let agent = &pod["containers"][0];
    assert_eq!(agent["image"], "registry.example/regatta:0.1.0");
    assert_eq!(agent["resources"]["requests"], json!({ "cpu": "4", "memory": "1Gi" }));
    assert_eq!(agent["resources"]["limits"], agent["resources"]["requests"]);
    let expected =
        ["agent", "--fleet=/fleet/agent.toml", "--targets=10.0.0.0/24:80", "--max-rate=5000/s"];
    assert_eq!(agent["args"], json!(expected));
}

// The level "restricted" of the Pod Security Standards.
#[test]
fn a_pod_has_no_privileges() {
    let [_, job] = Files::new("fleet").kubernetes(&[]);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_ne!(pod["securityContext"]["runAsUser"], 0);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let expected = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    });
    assert_eq!(pod["containers"][0]["securityContext"], expected);
    for key in ["hostNetwork", "hostPID", "hostIPC"] {
        assert!(pod.get(key).is_none(), "{key}");
    }
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(volumes.iter().all(|volume| volume.get("hostPath").is_none()), "{volumes:?}");
}

#[test]
fn the_secret_has_the_keys_of_the_agents_and_not_that_of_the_leader() {
    let files = Files::new("fleet");
    let [secret, job] = files.kubernetes(&["--agents", "gen2"]);
    let data = secret["stringData"].as_object().unwrap();
    let names: Vec<&String> = data.keys().collect();
    assert_eq!(names, ["ca.pem", "gen2.nk", "gen2.toml"]);
    assert_eq!(data["gen2.nk"], files.read("gen2.nk").trim());
    assert_eq!(data["ca.pem"], files.read("ca.pem"));
    let name = &secret["metadata"]["name"];
    assert_eq!(job["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"], *name);
    assert_eq!(job["spec"]["completions"], 1);
}

/// Makes the folder that the container of a pod sees, as the kubelet does for a user that is not root, and returns the
/// arguments of its process.
fn mounted(secret: &Value, job: &Value, index: &str, folder: &Path) -> Vec<String> {
    let pod = &job["spec"]["template"]["spec"];
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["subPathExpr"], "$(JOB_COMPLETION_INDEX)");
    let volume = &pod["volumes"][0]["secret"];
    DirBuilder::new().mode(0o700).create(folder).unwrap();
    for item in volume["items"].as_array().unwrap() {
        let path = item["path"].as_str().unwrap();
        let Some((of, name)) = path.split_once('/') else { panic!("{path}") };
        if of == index {
            let content = secret["stringData"][item["key"].as_str().unwrap()].as_str().unwrap();
            let mode = volume["defaultMode"].as_u64().unwrap() as u32;
            let mut file = OpenOptions::new();
            let file = file.write(true).create_new(true).mode(mode).open(folder.join(name));
            file.unwrap().write_all(content.as_bytes()).unwrap();
        }
    }
    let (path, arguments) = (mount["mountPath"].as_str().unwrap(), &pod["containers"][0]["args"]);
    let arguments = arguments.as_array().unwrap().iter().map(|one| one.as_str().unwrap());
    arguments.map(|one| one.replace(path, folder.to_str().unwrap())).collect()
}

#[test]
fn a_pod_is_the_agent_with_its_index() {
    let files = Files::new("fleet");
    let limits = ["--max-connections", "9", "--max-session", "1m", "--max-rate", "1k/s"];
    let [secret, job] = files.kubernetes(&limits);
    let folder = files.folder.path().join("mounted");
    let arguments = mounted(&secret, &job, "1", &folder);
    assert!(fs::read_to_string(folder.join("agent.toml")).unwrap().contains("\"gen2\""));
    let log = files.folder.path().join("log");
    let mut agent = regatta!("");
    agent.args(arguments).stderr(File::create(&log).unwrap()).stdin(Stdio::null());
    let mut agent = agent.spawn().unwrap();
    // It has read its files, and accepted its options.
    until("the agent tries to reach its broker", || {
        let said = fs::read_to_string(&log).unwrap();
        said.contains("cannot connect to the broker broker.invalid:4222")
            || agent.try_wait().unwrap().is_some()
    });
    let ended = agent.try_wait().unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(ended.is_none(), "{}", fs::read_to_string(&log).unwrap());
}

/// Fails if `of` has something that `all` has not.
#[track_caller]
fn is_part(of: &Value, all: &Value, path: &str) {
    match (of, all) {
        (Value::Object(of), Value::Object(all)) => {
            for (key, value) in of {
                let other = all.get(key).unwrap_or_else(|| panic!("{path}.{key} is unknown"));
                is_part(value, other, &format!("{path}.{key}"));
            }
        }
        (Value::Array(of), Value::Array(all)) => {
            assert_eq!(of.len(), all.len(), "{path}");
            of.iter().zip(all).for_each(|(of, all)| is_part(of, all, path));
        }
        _ => assert_eq!(of, all, "{path}"),
    }
}

// It reads the Job as its own type, which drops fields that do not exist, and fails for values of wrong types.
#[test]
#[cfg_attr(not(has_kubectl), ignore = "kubectl is not installed")]
fn kubectl_knows_all_fields_of_the_job() {
    let files = Files::new("fleet");
    let [_, mut job] = files.kubernetes(&[]);
    let path = files.folder.path().join("job.json");
    fs::write(&path, job.to_string()).unwrap();
    let mut kubectl = Command::new(prerequisite::find("kubectl").unwrap());
    // It prints nothing if nothing changes.
    kubectl.args(["set", "image", "--local", "-o", "json", "agent=other", "-f"]).arg(&path);
    kubectl.env("HOME", files.folder.path());
    let read = run(kubectl);
    job["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
    assert_eq!(read.code(), 0, "{read:?}");
    is_part(&job, &serde_json::from_str(&read.stdout).unwrap(), "job");
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn the_schemas_of_kubernetes_accept_the_manifest() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/kubernetes-validate");
    if !library.join("kubernetes_validate").is_dir() {
        return skip("kubernetes-validate is not installed (scripts/setup --all)");
    }
    let files = Files::new("fleet");
    let path = files.folder.path().join("manifest.yaml");
    let args = ["--image", "regatta", "--cpus", "1"];
    fs::write(&path, files.manifest("kubernetes", &args).stdout).unwrap();
    let mut python = Command::new("python3");
    python.args(["-m", "kubernetes_validate", "--strict"]).arg(path).env("PYTHONPATH", library);
    let read = run(python);
    assert_eq!(read.code(), 0, "{read:?}");
    assert_eq!(read.stdout.matches("INFO").count(), 2, "{read:?}");
}

/// Writes a program in place of `srun`: runs a command as each of `tasks`. Its options are written to `srun.options`.
pub fn srun(folder: &Path, tasks: usize) {
    let script = format!(
        "#!/bin/sh\n\
         while case $1 in --*) ;; *) false ;; esac; do echo \"$1\" >> \"$0.options\"; shift; done\n\
         n=0\n\
         while [ $n -lt {tasks} ]; do SLURM_PROCID=$n \"$@\" & n=$((n + 1)); done\n\
         wait\n"
    );
    program(&folder.join("srun"), &script);
}

fn program(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// The command that runs a batch script with the programs in `folder`.
pub fn bash(script: &Path, folder: &Path) -> Command {
    let mut bash = Command::new("bash");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    bash.arg(script).current_dir(folder).env("PATH", path);
    bash
}

#[test]
fn a_batch_script_starts_each_agent_with_its_file() {
    // A folder whose name would do harm without quotes.
    let files = Files::new("it's $(touch broken) `touch broken` \"a b\"; touch broken #");
    let folder = files.folder.path();
    srun(folder, 2);
    let agent = folder.join("my regatta");
    program(&agent, "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$SLURM_PROCID.arguments\"\n");
    let script = files.slurm(&["--program", agent.to_str().unwrap(), "--max-connections", "7"]);
    let path = folder.join("script");
    fs::write(&path, &script).unwrap();
    let mut checked = Command::new("bash");
    checked.arg("-n").arg(&path);
    assert_eq!(run(checked).code(), 0);
    let run = run(bash(&path, folder));
    assert_eq!((run.code(), run.stderr.as_str()), (0, ""), "{run:?}");
    for (task, name) in [(0, "gen1"), (1, "gen2")] {
        let arguments = fs::read_to_string(folder.join(format!("{task}.arguments"))).unwrap();
        let real = fs::canonicalize(&files.path).unwrap();
        let expected = format!(
            "agent\n--fleet\n{}/{name}.toml\n--targets=10.0.0.0/24:80\n--max-connections=7\n",
            real.display()
        );
        assert_eq!(arguments, expected);
    }
    assert!(!folder.join("broken").exists());
    let options = fs::read_to_string(folder.join("srun.options")).unwrap();
    let expected = "--ntasks-per-node=1\n--cpu-bind=none\n--kill-on-bad-exit=1\n--label\n";
    assert_eq!(options, expected);
    let head: Vec<&str> = script.lines().filter(|line| line.starts_with("#SBATCH ")).collect();
    assert!(
        head.contains(&"#SBATCH --nodes=2") && head.contains(&"#SBATCH --exclusive"),
        "{head:?}"
    );
    assert!(head.contains(&"#SBATCH --time=60"), "{head:?}");
}

#[test]
fn what_no_manifest_can_have_is_refused() {
    let files = Files::new("fleet");
    let refused = |scheduler: &str, more: &[&str]| {
        let ended = files.manifest(scheduler, more);
        assert_eq!((ended.code(), ended.stdout.as_str()), (2, ""), "{ended:?}");
        ended.stderr
    };
    let error = refused("kubernetes", &["--image", "a\"\n- b", "--cpus", "1"]);
    assert!(error.starts_with("regatta: expected an image, e.g. "), "{error}");
    let error = refused("kubernetes", &["--image", "a", "--cpus", "1.5"]);
    assert!(error.contains("--cpus <N>"), "{error}");
    let error = refused("slurm", &["--agents", "gen1;id"]);
    assert_eq!(error, "regatta: there is no agent \"gen1;id\"; leader.toml lists gen1, gen2\n");
    let leader = files.read("leader.toml").replace("gen2", "gen2'; id; '");
    fs::write(files.path.join("leader.toml"), leader).unwrap();
    let error = refused("slurm", &[]);
    assert!(error.contains("leader.toml has the name \"gen2'; id; '\": expected "), "{error}");
}
