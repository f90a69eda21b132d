// Command tenon-temporal is tenon with the driver of Temporal: all commands of cmd/tenon, and the command worker.
//
//	tenon-temporal serve   ─┐ begin runs, answer requests       ┌─ tenon-temporal worker
//	tenon-temporal run      ├─────► Temporal: one workflow ────►┤  tenon-temporal worker
//	tenon-temporal approvals┘       for each run                └─ … work on runs
//	                                      all: one store in PostgreSQL
//
// It is a separate program, in a nested module, because Temporal's SDK brings more than twenty modules that other
// installations do not need. It is built from a checkout: go build -C engine/temporal ./cmd/tenon-temporal.
//
// engine: {kind: temporal, temporal: {…}} in tenon.yaml selects the driver; docs/guide/temporal.md describes it.
// With any other engine the program works like tenon.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"os"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine/temporal"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/cli"
	"github.com/tenonhq/tenon/internal/quick"
)

func main() { os.Exit(cli.Main(cli.Program{Cluster: open, Processors: quick.Processors})) }

// open prepares the connection to the cluster of a configuration. Errors: config (a certificate or a key).
func open(_ context.Context, c host.ClusterConfig) (host.Cluster, error) {
	conf := temporal.Config{Address: c.Address, Namespace: c.Namespace, TaskQueue: c.TaskQueue, APIKey: c.APIKey,
		Deployment: c.Deployment, Build: c.Version, Logger: c.Logger,
		Plain: c.SearchAttributes != nil && !*c.SearchAttributes}
	var err error
	if c.CodecKey != "" {
		if conf.Key, err = hex.DecodeString(c.CodecKey); err != nil || len(conf.Key) != 32 {
			return nil, tenon.Errorf(tenon.CodeConfig, "engine.temporal.codec_key must have 64 hexadecimal "+
				"digits; make one with: openssl rand -hex 32")
		}
	}
	if c.UsesTLS(c.APIKey != "") {
		if conf.TLS, err = tlsConfig(c); err != nil {
			return nil, err
		}
	}
	cluster, err := temporal.New(conf)
	if err != nil {
		return nil, err // not cluster: a nil *Cluster is not a nil host.Cluster
	}
	return cluster, nil
}

// tlsConfig reads the certificates.
func tlsConfig(c host.ClusterConfig) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "engine.temporal.ca cannot be read: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, tenon.Errorf(tenon.CodeConfig, "engine.temporal.ca: %s has no certificate in PEM form", c.CA)
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "engine.temporal.cert and engine.temporal.key cannot be "+
				"used: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

var _ host.Cluster = (*temporal.Cluster)(nil)
