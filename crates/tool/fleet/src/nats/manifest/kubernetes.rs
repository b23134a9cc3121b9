//! An Indexed Job of Kubernetes with a pod for each agent, and the Secret with their files, as YAML.

use super::{CA, FILE, KEY, Limits, Member, Members, units};
use crate::error::Error;
use std::{fmt::Write as _, num::NonZeroU32, str::FromStr, time::Duration};

/// Where a container finds the files of its agent.
const FOLDER: &str = "/fleet";
/// The label of the pods: no two pods with it share a node.
const LABEL: &str = "app.kubernetes.io/name: regatta-agent";
/// User and group of the agents: some that no image uses.
const USER: u32 = 65_532;
/// Longest reference of an image.
const LONGEST_IMAGE: usize = 1_000;

/// What the pods are.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    /// The image, whose entry point is regatta.
    pub image: String,
    /// CPUs of each pod.
    pub cpus: NonZeroU32,
    /// Memory of each pod.
    pub memory: Memory,
    /// How long they run.
    pub time: Duration,
}

/// An amount of memory in the notation of Kubernetes, in whole MiB or GiB, e.g. `2Gi`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory(String);

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Memory, String> {
        let digits = text.strip_suffix("Mi").or_else(|| text.strip_suffix("Gi"));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let number =
            digits.filter(|digits| is_number(digits)).and_then(|digits| digits.parse().ok());
        match number {
            Some(1..=1_000_000_u32) => Ok(Memory(text.to_owned())),
            _ => Err(format!("expected whole MiB or GiB, e.g. 512Mi or 2Gi; got {text:?}")),
        }
    }
}

impl Kubernetes {
    /// Returns the manifest.
    ///
    /// # Errors
    /// [`Error::Nats`] if the image is none, or the broker is on the machine of each agent.
    pub fn manifest(&self, members: &Members, limits: &Limits) -> Result<String, Error> {
        check_image(&self.image)?;
        if members.is_local {
            return Err(Error::Nats(
                "the broker has a loopback address, which is each pod itself: expected a fleet whose broker pods can \
                 reach (regatta fleet init --broker)"
                    .into(),
            ));
        }
        Ok(format!("{}---\n{}", secret(members), self.job(members, limits)))
    }

    fn job(&self, members: &Members, limits: &Limits) -> String {
        let (count, deadline_s) = (members.agents.len(), units(self.time, 1));
        format!(
            "apiVersion: batch/v1
kind: Job
metadata:
  name: {}
  labels:
    {LABEL}
spec:
  completionMode: Indexed
  completions: {count}
  parallelism: {count}
  # If an agent is lost, all end. None comes back in the middle of a load.
  backoffLimit: 0
  activeDeadlineSeconds: {deadline_s}
  template:
    metadata:
      labels:
        {LABEL}
    spec:
{}      containers:
{}      volumes:
{}",
            quoted(&members.title()),
            pod(),
            self.container(limits),
            volume(members)
        )
    }

    fn container(&self, limits: &Limits) -> String {
        let Kubernetes { image, cpus, memory: Memory(memory), .. } = self;
        let image = quoted(image);
        let file = format!("--fleet={FOLDER}/{FILE}");
        let arguments = ["agent".to_owned(), file].into_iter().chain(limits.options());
        let arguments: String =
            arguments.map(|argument| format!("            - {}\n", quoted(&argument))).collect();
        format!(
            "        - name: agent
          image: {image}
          args:
{arguments}          # Whole CPUs, and requests that are the limits: the kubelet can give it CPUs of its own.
          resources:
            requests:
              cpu: \"{cpus}\"
              memory: \"{memory}\"
            limits:
              cpu: \"{cpus}\"
              memory: \"{memory}\"
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop:
                - ALL
          volumeMounts:
            # Only the files of the agent with the index of this pod.
            - name: files
              mountPath: {FOLDER}
              subPathExpr: $(JOB_COMPLETION_INDEX)
              readOnly: true
"
        )
    }
}

/// What is the same in all pods.
fn pod() -> String {
    format!(
        "      restartPolicy: Never
      terminationGracePeriodSeconds: 5
      automountServiceAccountToken: false
      enableServiceLinks: false
      # The agent is not process 1, which would ignore SIGTERM and would have to reap others.
      shareProcessNamespace: true
      securityContext:
        runAsNonRoot: true
        runAsUser: {USER}
        runAsGroup: {USER}
        # This group may read the files of the Secret, which root owns.
        fsGroup: {USER}
        seccompProfile:
          type: RuntimeDefault
      # A node for each agent.
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  {LABEL}
"
    )
}

/// The Secret as a volume: the files of the agent with index 2 are in the folder `2`.
fn volume(members: &Members) -> String {
    let mut text = format!(
        "        - name: files
          secret:
            secretName: {}
            # r--------
            defaultMode: 256
            items:
",
        quoted(&members.title())
    );
    for (index, Member { name, .. }) in members.agents.iter().enumerate() {
        let files = [(format!("{name}.toml"), FILE), (format!("{name}.nk"), KEY)];
        let ca = members.ca.is_some().then(|| (CA.to_owned(), CA));
        for (key, file) in files.into_iter().chain(ca) {
            let key = quoted(&key);
            // Writing to a String cannot fail.
            let _ =
                writeln!(text, "              - key: {key}\n                path: {index}/{file}");
        }
    }
    text
}

/// The Secret: the file and the key of each agent, and the certificate.
fn secret(members: &Members) -> String {
    let mut text = format!(
        "# The agents of a fleet, written by `regatta fleet manifest kubernetes`. It has their keys: keep it secret.
apiVersion: v1
kind: Secret
metadata:
  name: {}
  labels:
    {LABEL}
type: Opaque
stringData:
",
        quoted(&members.title())
    );
    for agent in &members.agents {
        for (ending, content) in [("toml", &agent.file), ("nk", &agent.seed)] {
            let key = quoted(&format!("{}.{ending}", agent.name));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {key}: {}", quoted(content));
        }
    }
    if let Some(ca) = &members.ca {
        let _ = writeln!(text, "  {CA}: {}", quoted(ca));
    }
    text
}

/// A scalar of YAML: a string of JSON is one (YAML 1.2, section 1.3).
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Checks that this may be the reference of an image (distribution/reference).
fn check_image(image: &str) -> Result<(), Error> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-/:@[]".contains(c);
    let starts = image.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
    match starts && image.len() <= LONGEST_IMAGE && image.chars().all(is_good) {
        true => Ok(()),
        false => Err(Error::Nats(format!(
            "expected an image, e.g. registry.example/regatta:0.1.0; got {image:?}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Member, *};

    fn members(ca: Option<&str>) -> Members {
        let agent = |name: &str| Member {
            name: name.to_owned(),
            file: format!("name = \"{name}\"\n"),
            seed: format!("SU{name}"),
        };
        let agents = ["gen1", "gen2"].map(agent).to_vec();
        Members { fleet: "f00".into(), agents, ca: ca.map(str::to_owned), is_local: false }
    }

    fn limits() -> Limits {
        let targets = vec!["10.0.0.0/24:80".parse().unwrap()];
        Limits { targets, max_rate: None, max_connections: None, max_session: None }
    }

    fn kubernetes(image: &str) -> Kubernetes {
        let cpus = NonZeroU32::new(4).unwrap();
        let (memory, time) = ("2Gi".parse().unwrap(), Duration::from_millis(1_500));
        Kubernetes { image: image.to_owned(), cpus, memory, time }
    }

    #[test]
    fn the_secret_has_the_files_of_all_agents_and_each_pod_those_of_one() {
        let manifest = kubernetes("x").manifest(&members(Some("A\nB\n")), &limits()).unwrap();
        let (secret, job) = manifest.split_once("---\n").unwrap();
        let (_, data) = secret.split_once("stringData:\n").unwrap();
        let expected = "  \"gen1.toml\": \"name = \\\"gen1\\\"\\n\"\n  \"gen1.nk\": \"SUgen1\"\n  \
                        \"gen2.toml\": \"name = \\\"gen2\\\"\\n\"\n  \"gen2.nk\": \"SUgen2\"\n  ca.pem: \"A\\nB\\n\"\n";
        assert_eq!(data, expected);
        let (_, items) = job.split_once("            items:\n").unwrap();
        let expected = [
            ("\"gen1.toml\"", "0/agent.toml"),
            ("\"gen1.nk\"", "0/agent.nk"),
            ("\"ca.pem\"", "0/ca.pem"),
            ("\"gen2.toml\"", "1/agent.toml"),
            ("\"gen2.nk\"", "1/agent.nk"),
            ("\"ca.pem\"", "1/ca.pem"),
        ]
        .map(|(key, path)| format!("              - key: {key}\n                path: {path}\n"));
        assert_eq!(items, expected.concat());
        assert!(job.contains("activeDeadlineSeconds: 2\n"), "{job}");
    }

    #[test]
    fn a_fleet_without_tls_has_no_certificate() {
        let manifest = kubernetes("x").manifest(&members(None), &limits()).unwrap();
        assert!(!manifest.contains(CA), "{manifest}");
    }

    #[test]
    fn a_string_cannot_break_out_of_its_quotes() {
        let text = "a\"\n- b: \\ {x: [\u{1}\u{2028}#é";
        assert_eq!(quoted(text), "\"a\\\"\\n- b: \\\\ {x: [\\u0001\u{2028}#é\"");
    }

    #[test]
    fn only_the_reference_of_an_image_is_accepted() {
        for image in ["regatta", "r.example:5000/a_b/regatta:1", "x@sha256:00ff", "[fd00::1]:5/x"] {
            assert!(check_image(image).is_ok(), "{image}");
        }
        let long = "x".repeat(LONGEST_IMAGE + 1);
        for image in ["", "a b", "-x", "x\"\n", "$(A)", &long] {
            let error = kubernetes(image).manifest(&members(None), &limits()).unwrap_err();
            assert!(error.to_string().starts_with("expected an image, e.g. "), "{error}");
        }
    }

    #[test]
    fn a_broker_on_each_pod_itself_is_refused() {
        let members = Members { is_local: true, ..members(None) };
        let error = kubernetes("x").manifest(&members, &limits()).unwrap_err().to_string();
        assert!(error.starts_with("the broker has a loopback address"), "{error}");
    }

    #[test]
    fn memory_is_whole_mib_or_gib() {
        assert_eq!("2Gi".parse::<Memory>(), Ok(Memory("2Gi".into())));
        for text in ["", "Gi", "2", "2G", "1.5Gi", "-1Mi", "+1Mi", "0Gi", "99999999999Mi", "1Gi\n"]
        {
            let error = text.parse::<Memory>().unwrap_err();
            assert_eq!(
                error,
                format!("expected whole MiB or GiB, e.g. 512Mi or 2Gi; got {text:?}")
            );
        }
    }
}
