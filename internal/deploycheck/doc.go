// Package deploycheck tries the files of the folders deploy and docs/operations without a cluster, Docker, Prometheus
// and Grafana.
//
//	chart          is rendered with its default values and with PostgreSQL
//	kubernetes     has the rendered manifests, for users without Helm; -update writes them
//	compose*.yaml  are loaded by the library of Docker Compose, which has the schema of its format
//
// The manifests are decoded into the types of k8s.io/api, and an unknown or repeated field is an error. Then the rules
// of the page docs/guide/deploying.md are compared with them: no root, no privileges, a read-only root file system,
// limits, probes, and enough time to drain. Helm is not used, because its module is larger than tenon; the chart only
// uses what the renderer of the test has.
//
// The expressions of docs/operations are parsed by Prometheus' parser, and the dashboard is decoded into the types of
// Grafana.
//
// The package is a nested module, so that none of these modules gets into tenon's go.mod. It has tests only.
package deploycheck
