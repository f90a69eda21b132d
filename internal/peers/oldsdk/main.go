// Command oldsdk is the client of the version of the official Go SDK before the newest one, for package peers:
//
//	peers ──starts──► oldsdk URL ──MCP──► tenon serve
//
// Its code is package sdkclient of module internal/rivals. Only go.mod differs: it replaces the SDK by the earlier
// version. It is a separate module, because one build has one version of a module.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tenonhq/tenon/internal/rivals/sdkclient"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: oldsdk URL, started by package peers")
		os.Exit(2)
	}
	if err := sdkclient.Run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "oldsdk:", err)
		os.Exit(1)
	}
}
