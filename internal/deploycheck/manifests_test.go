package deploycheck

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// decode decodes each document into the type of its kind, and refuses fields that the type does not have.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	objects := map[string]any{}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatal(err)
		}
		kinds := map[string]any{"v1 ServiceAccount": &corev1.ServiceAccount{}, "v1 ConfigMap": &corev1.ConfigMap{},
			"v1 Service": &corev1.Service{}, "apps/v1 StatefulSet": &appsv1.StatefulSet{},
			"policy/v1 PodDisruptionBudget": &policyv1.PodDisruptionBudget{}}
		into := kinds[head.APIVersion+" "+head.Kind]
		if into == nil {
			t.Fatalf("%s %s: unknown kind", head.APIVersion, head.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
			t.Errorf("%s: %v", head.Kind, err)
		}
		objects[head.Kind] = into
	}
	return objects
}

// TestREL_manifestsStrict decodes the manifests and checks the rules of docs/guide/deploying.md.
func TestREL_manifestsStrict(t *testing.T) {
	for name := range variants {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(deploy, "kubernetes", name))
			if err != nil {
				t.Fatal(err)
			}
			objects := decode(t, string(text))
			set := objects["StatefulSet"].(*appsv1.StatefulSet)
			pod := set.Spec.Template
			checkPod(t, pod.Spec)
			for key, value := range set.Spec.Selector.MatchLabels {
				if pod.Labels[key] != value {
					t.Errorf("the selector %s=%s matches no pod", key, value)
				}
			}
			for key, value := range objects["Service"].(*corev1.Service).Spec.Selector {
				if pod.Labels[key] != value {
					t.Errorf("the service selects %s=%s: no pod", key, value)
				}
			}
			_, budget := objects["PodDisruptionBudget"]
			postgres := name == "postgres.yaml"
			if budget != postgres || (*set.Spec.Replicas > 1) != postgres ||
				(len(set.Spec.VolumeClaimTemplates) == 0) != postgres {
				t.Errorf("%d replicas, %d volumes, budget %t", *set.Spec.Replicas, len(set.Spec.VolumeClaimTemplates), budget)
			}
			config := objects["ConfigMap"].(*corev1.ConfigMap).Data["tenon.yaml"]
			if !strings.Contains(config, "listen: 127.0.0.1:8420") ||
				strings.Contains(config, "TENON_POSTGRES_DSN") != postgres {
				t.Errorf("configuration:\n%s", config)
			}
		})
	}
}

// checkPod checks what a pod may do, and that its end leaves enough time.
func checkPod(t *testing.T, p corev1.PodSpec) {
	t.Helper()
	s := p.SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || *s.RunAsUser == 0 ||
		s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *p.AutomountServiceAccountToken {
		t.Errorf("the pod's security context: %+v", s)
	}
	volumes := map[string]bool{"data": true} // of a claim
	for _, v := range p.Volumes {
		volumes[v.Name] = true
		if v.Secret != nil && *v.Secret.DefaultMode != 0o440 {
			t.Errorf("the secret %s has the mode %o", v.Name, *v.Secret.DefaultMode)
		}
	}
	for _, c := range append(slices.Clone(p.InitContainers), p.Containers...) {
		k := c.SecurityContext
		if k == nil || *k.AllowPrivilegeEscalation || !*k.ReadOnlyRootFilesystem ||
			!slices.Equal(k.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: security context %+v", c.Name, k)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: resources %+v", c.Name, c.Resources)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s mounts %s, which is no volume", c.Name, m.Name)
			}
		}
		if strings.HasSuffix(c.Image, ":latest") || !strings.Contains(c.Image, ":") {
			t.Errorf("%s: the image %s has no version", c.Name, c.Image)
		}
	}
	proxy, tenon := p.InitContainers[0], p.Containers[0]
	if proxy.RestartPolicy == nil || *proxy.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("the proxy is no sidecar: it would have to end before tenon starts")
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": tenon.LivenessProbe, "/readyz": tenon.ReadinessProbe} {
		if probe == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.IntValue() != int(proxy.Ports[0].ContainerPort) {
			t.Errorf("the probe of %s: %+v", path, probe)
		}
	}
	i := slices.Index(tenon.Args, "--grace")
	grace, err := strconv.Atoi(strings.TrimSuffix(tenon.Args[i+1], "s"))
	if err != nil {
		t.Fatal(err)
	}
	if most := *p.TerminationGracePeriodSeconds; most < tenon.Lifecycle.PreStop.Sleep.Seconds+int64(grace)+5 {
		t.Errorf("%d s to end, a pause of %d s and a grace of %d s", most, tenon.Lifecycle.PreStop.Sleep.Seconds, grace)
	}
}
