// Command temporalserver is a Temporal server for tests: all services of go.temporal.io/server in one process, with
// one SQLite file. The test suite of Temporal's SDK downloads a program for this; this one is built from Go modules,
// whose checksums are known:
//
//	temporalserver -db FILE -port N [-namespaces default,other] [-key KEY]
//
// It creates the tables and the namespaces in a new file, and continues with an existing one, so that a test can kill
// the process and start it again. With a key it refuses every request whose header Authorization is not that key, like
// a cloud that asks for an API key. Its errors go to stderr.
//
// It is in a separate module, because the server brings more than two hundred modules. .ci/temporal.sh builds it once
// for each version and keeps the program in the cache.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/testing/freeport"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

func main() {
	db := flag.String("db", "", "SQLite file")
	port := flag.Int("port", 0, "port of the frontend on 127.0.0.1")
	namespaces := flag.String("namespaces", "default", "namespaces of a new file, separated by commas")
	key := flag.String("key", "", "key that each request must have")
	flag.Parse()
	if err := serve(*db, *port, strings.Split(*namespaces, ","), *key); err != nil {
		fmt.Fprintln(os.Stderr, "temporalserver:", err)
		os.Exit(1)
	}
}

// serve runs the server until the process is interrupted.
func serve(db string, port int, namespaces []string, key string) error {
	if db == "" || port == 0 {
		return errors.New("-db and -port are required")
	}
	cfg := configure(db, port)
	file := cfg.Persistence.DataStores[sqliteplugin.PluginName].SQL
	if _, err := os.Stat(db); errors.Is(err, os.ErrNotExist) {
		if err := create(file, namespaces); err != nil {
			return err
		}
	}
	options := []temporal.ServerOption{temporal.WithConfig(cfg), temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Level: "error"}))),
		temporal.WithAuthorizer(keyed(key)),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims{} }),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true}),
		temporal.InterruptOn(temporal.InterruptCh())}
	server, err := temporal.NewServer(options...)
	if err != nil {
		return err
	}
	return server.Start() // returns when the process is interrupted
}

// create makes the tables and the namespaces of a new file.
func create(file *config.SQL, namespaces []string) error {
	if err := sqlite.SetupSchema(file); err != nil {
		return err
	}
	for _, name := range namespaces {
		n, err := sqlite.NewNamespaceConfig("active", name, false, nil)
		if err != nil {
			return err
		}
		if err := sqlite.CreateNamespaces(file, n); err != nil {
			return err
		}
	}
	return nil
}

// configure returns the configuration of a server with one shard on 127.0.0.1.
func configure(db string, port int) *config.Config {
	const host = "127.0.0.1"
	address := fmt.Sprintf("%s:%d", host, port)
	service := func(grpc int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: grpc, MembershipPort: freeport.MustGetFreePort(),
			BindOnLocalHost: true}}
	}
	off := config.ArchivalNamespaceDefaults{
		History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
		Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"}}
	c := &config.Config{
		Persistence: config.Persistence{DefaultStore: sqliteplugin.PluginName, VisibilityStore: sqliteplugin.PluginName,
			NumHistoryShards: 1, DataStores: map[string]config.DataStore{sqliteplugin.PluginName: {SQL: &config.SQL{
				PluginName: sqliteplugin.PluginName, DatabaseName: db,
				ConnectAttributes: map[string]string{"mode": "rwc", "_journal_mode": "wal", "_synchronous": "off"}}}}},
		ClusterMetadata: &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: "active",
			CurrentClusterName: "active", ClusterInformation: map[string]cluster.ClusterInformation{
				"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}}},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{"frontend": service(port), "history": service(freeport.MustGetFreePort()),
			"matching": service(freeport.MustGetFreePort()), "worker": service(freeport.MustGetFreePort())},
		Archival: config.Archival{History: config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"}},
		PublicClient:      config.PublicClient{HostPort: address},
		NamespaceDefaults: config.NamespaceDefaults{Archival: off},
	}
	c.Global.Membership = config.Membership{MaxJoinDuration: 30e9, BroadcastAddress: host}
	return c
}

// claims passes the header of a request to the authorizer.
type claims struct{}

// GetClaims implements [authorization.ClaimMapper].
func (claims) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	return &authorization.Claims{Subject: info.AuthToken}, nil
}

// keyed allows the requests with a key; all, if it is empty. The server calls its own frontend without a key, for
// the cluster and for its own namespace.
type keyed string

// Authorize implements [authorization.Authorizer].
func (k keyed) Authorize(_ context.Context, c *authorization.Claims, t *authorization.CallTarget) (authorization.Result,
	error) {
	if k == "" || c != nil && c.Subject == "Bearer "+string(k) || t.Namespace == "" ||
		t.Namespace == "temporal-system" {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	return authorization.Result{Decision: authorization.DecisionDeny}, nil
}
