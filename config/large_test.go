package config

import (
	"fmt"
	"strings"
	"testing"
)

// largeFile returns a configuration of n servers with ten variables each, a tool for each
// server, and a rule about each tool.
func largeFile(n int) string {
	var b strings.Builder
	b.WriteString("servers:\n")
	for i := range n {
		fmt.Fprintf(&b, "  s%d:\n    command: npx\n    args: [-y, server-%d]\n    where: 'tool.remote_name != \"x\"'\n    policy: {approval: {if: 'tool.remote_name == \"t\"'}}\n    env:\n", i, i)
		for j := range 10 {
			fmt.Fprintf(&b, "      V%d: value-%d\n", j, i)
		}
	}
	b.WriteString("tools:\n")
	for i := range n {
		fmt.Fprintf(&b, "  t%d: {server: s%d, policy: {approval: {if: 'args.x == %d'}}}\n", i, i, i)
	}
	b.WriteString("secrets:\n")
	for i := range n {
		fmt.Fprintf(&b, "  k%d: {env: K%d}\n", i, i)
	}
	return b.String()
}

// BenchmarkLoad reads and checks files with many servers, each with ten variables. The time grows in proportion to the
// number of servers.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{500, 1000, 2000} {
		data := []byte(largeFile(n))
		b.Run(fmt.Sprintf("servers=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Parse("tenon.yaml", data, Options{Dir: b.TempDir(), LookupEnv: env()}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
