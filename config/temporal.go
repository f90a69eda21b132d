package config

import (
	"context"
	"path/filepath"

	"github.com/tenonhq/tenon"
)

// The values of [Engine.Kind].
const (
	EngineLocal    = "local"
	EngineTemporal = "temporal"
)

// Temporal names your Temporal cluster and the place of tenon's workflows in it.
type Temporal struct {
	// Address and port of the cluster's frontend.
	Address string `yaml:"address" default:"127.0.0.1:7233"`
	// Namespace of the workflows. It must exist.
	Namespace string `yaml:"namespace" default:"default"`
	// Task queue of the workflows. A server with a `replica` has a separate queue: this name, a hyphen and the label.
	TaskQueue string `yaml:"task_queue" default:"tenon"`
	// API key, which is sent over TLS.
	APIKey tenon.Secret `yaml:"api_key"`
	// Whether connections use TLS. The certificates in `ca`, `cert` and `key` are PEM files.
	TLS *bool `yaml:"tls" default:"true with api_key, ca or cert"`
	// Certificates of authorities that sign the cluster's certificate, in place of the system's.
	CA string `yaml:"ca"`
	// Certificate of this client.
	Cert string `yaml:"cert"`
	// Key of `cert`.
	Key string `yaml:"key"`
	// Name in the cluster's certificate, if it is not the host of `address`.
	ServerName string `yaml:"server_name" default:"the host of address"`
	// Key that encrypts what the histories hold: 64 hexadecimal digits. Search attributes are never encrypted.
	CodecKey tenon.Secret `yaml:"codec_key"`
	// Whether workflows have the agent, session, principal and state of their runs as search attributes.
	SearchAttributes *bool `yaml:"search_attributes" default:"true"`
	// Name of a worker deployment. With a name, workers are versioned by the version of tenon, and take no runs until
	// you make their version the current one.
	Deployment string `yaml:"deployment"`
}

// IsTemporal reports whether a Temporal cluster chooses the processes that work on runs.
func (e Engine) IsTemporal() bool { return e.Kind == EngineTemporal }

// UsesTLS reports whether connections to the cluster use TLS.
func (t Temporal) UsesTLS(apiKey bool) bool {
	if t.TLS != nil {
		return *t.TLS
	}
	return apiKey || t.CA != "" || t.Cert != ""
}

// TemporalSecrets returns the API key and the codec's key, which may be zero. It returns the errors of
// [Config.Resolve].
func (c *Config) TemporalSecrets(ctx context.Context) (api, codec tenon.Secret, err error) {
	if api, err = c.serveSecret(ctx, "engine.temporal.api_key", c.Engine.Temporal.APIKey); err != nil {
		return tenon.Secret{}, tenon.Secret{}, err
	}
	codec, err = c.serveSecret(ctx, "engine.temporal.codec_key", c.Engine.Temporal.CodecKey)
	return api, codec, err
}

// ResolvePath returns a path of the configuration, which is relative to the folder of its file.
func (c *Config) ResolvePath(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Dir, path)
}

// engine checks the engine.
func (k *checker) engine() {
	const at = "engine.temporal"
	switch {
	case k.has(at) && k.c.Found && k.c.Layer(at) == LayerProject:
		k.bad(at, "write it in your own file, or name this file with -c",
			"a project that was found does not choose the cluster that learns of your runs")
	case k.has(at) && !k.c.Engine.IsTemporal():
		k.bad(at, "add kind: temporal", "it is used with kind: temporal only")
	case k.c.Engine.IsTemporal() && !k.c.HasPostgres() && !k.failedUnder("store.postgres"):
		k.bad("engine.kind", "add store: {postgres: {dsn: …}}", "temporal needs the store in PostgreSQL, because "+
			"several processes work on the runs: store.postgres is missing")
	}
	if t := k.c.Engine.Temporal; (t.Cert == "") != (t.Key == "") {
		k.bad(at, "", "cert and key belong together")
	}
}
