package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/internal/figures/floor"
	"github.com/tenonhq/tenon/mcp"
)

// child runs one of the child processes of this program. "runner NAME" is the client of a candidate, which
// starts "server NAME" as its child. "model TIME" is the model of P6. "spend COMMAND…" runs a command and
// prints its resource usage. "steps DIR" and "resume DIR" are measurements of package durable; "waiting DIR",
// "idle-stdio DIR" and "idle-http DIR" are measurements of P8; "path SPEC" and "proxy URL" of P3 and P4, "bytes
// DIR" of GW. t2.go and t3.go define the children for tables.
func child(ctx context.Context, args []string) error {
	if args[0] == "spend" {
		return spendChild(args[1:], os.Stdout)
	}
	if len(args) != 2 {
		return fmt.Errorf("want two arguments, not %q", args)
	}
	switch what, name := args[0], args[1]; what {
	case "runner":
		return runner(ctx, name)
	case "server":
		return server(ctx, name)
	case concatChild, checkChild, groupChild, ingestChild:
		return tableChild(ctx, what, name, os.Stdout)
	case pathChild:
		return runPath(ctx, name)
	case proxyChild:
		return serveProxy(name)
	case bytesChild:
		return serveBytes(name)
	case modelChild:
		return serveModel(name)
	default:
		return durableChild(ctx, what, name, os.Stdout)
	}
}

func runner(ctx context.Context, name string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := dial(ctx, name, exe, "child", "server", name)
	if err != nil {
		return err
	}
	return errors.Join(bench.Serve(ctx, os.Stdin, os.Stdout, p), p.Close())
}

// dial returns the client of a candidate, connected to the server that the command starts.
func dial(ctx context.Context, name string, command ...string) (bench.Peer, error) {
	switch name {
	case rawPipe:
		return floor.StartRawPipe(command...)
	case minPipe, spawnPipe:
		return floor.StartMinPipe(command...)
	case ours:
		return dialOursStdio(ctx, mcp.LatestLegacy, command...)
	case oursModern:
		return dialOursStdio(ctx, mcp.Modern, command...)
	case ours2025:
		return dialOursHTTP(ctx, mcp.LatestLegacy, command...)
	case ours2026:
		return dialOursHTTP(ctx, mcp.Modern, command...)
	case minHTTP:
		url, stop, err := bench.StartHTTP(command...)
		if err != nil {
			return nil, err
		}
		return floor.NewMinHTTP(url, stop), nil
	}
	return nil, fmt.Errorf("unknown candidate %q", name)
}

// server runs the server of a candidate until stdin ends.
func server(ctx context.Context, name string) error {
	if n, ok := strings.CutPrefix(name, tableServer); ok {
		tools, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		return serveList(ctx, tools)
	}
	switch name {
	case rawPipe:
		return floor.ServeRawPipe(os.Stdin, os.Stdout)
	case minPipe:
		return floor.ServeMinPipe(os.Stdin, os.Stdout)
	case spawnPipe:
		return floor.ServeSpawnPipe(os.Stdin, os.Stdout)
	case ours, oursModern:
		return serveOursStdio(ctx)
	case ours2025, ours2026:
		return serveOursHTTP()
	case oursLarge:
		return serveOursHTTP(16<<10, 1<<20)
	case listServer:
		return serveList(ctx, listTools)
	case listPipe:
		return serveListPipe(os.Stdin, os.Stdout)
	case pathEcho:
		return bench.ServeHTTP(os.Stdin, os.Stdout, http.HandlerFunc(handleEcho))
	case minHTTP:
		return bench.ServeHTTP(os.Stdin, os.Stdout, http.HandlerFunc(floor.HandleMinHTTP))
	}
	return fmt.Errorf("unknown candidate %q", name)
}
