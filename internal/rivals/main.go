// Command rivals does with the MCP libraries of others what internal/figures does
// with ours: the same echo, through the official Go SDK and through mcp-go,
// client and server each in a process of its own.
//
//	internal/figures ──orders──► rivals runner NAME ──calls──► rivals server NAME
//
// It is a module of its own so that those libraries, and what they require, stay
// out of the main go.mod. internal/figures builds it where that is possible and
// measures it in the same rounds as ours; the rows P1.rival.… and P2.rival.… of
// docs/figures.md come from here. Each library is used the way its own
// documentation shows, with the switches that make it fastest for this work:
// raw tool handlers, JSON in place of event streams, no standing GET stream.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/internal/rivals/sdkclient"
)

// version2025 is the newest version of the protocol that begins with initialize.
const version2025 = "2025-11-25"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: rivals runner|server NAME, started by internal/figures")
	}
	what, name := args[0], args[1]
	if what == "client" { // of package peers
		return sdkclient.Run(ctx, name)
	}
	if what == "server" {
		if strings.HasPrefix(name, "mcp-go") {
			return serveMCPGo(name)
		}
		return serveGoSDK(ctx, name)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	dial := dialGoSDK
	if strings.HasPrefix(name, "mcp-go") {
		dial = dialMCPGo
	}
	p, err := dial(ctx, name, exe, "server", name)
	if err != nil {
		return err
	}
	return errors.Join(bench.Serve(ctx, os.Stdin, os.Stdout, p), p.Close())
}
