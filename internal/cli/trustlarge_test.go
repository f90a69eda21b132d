package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
)

// largeProject returns a configuration of n servers, each with ten variables and a secret.
func largeProject(tb testing.TB, n int) *config.Config {
	tb.Helper()
	var b strings.Builder
	b.WriteString("servers:\n")
	for i := range n {
		fmt.Fprintf(&b, "  s%d:\n    command: npx\n    args: [-y, server-%d]\n    env:\n      K: '${secret:k%d}'\n", i, i, i)
		for j := range 10 {
			fmt.Fprintf(&b, "      V%d: value-%d\n", j, i)
		}
	}
	b.WriteString("secrets:\n")
	for i := range n {
		fmt.Fprintf(&b, "  k%d: {env: K%d}\n", i, i)
	}
	c, err := config.Parse("tenon.yaml", []byte(b.String()), config.Options{Dir: tb.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// BenchmarkTrustItems makes the list of what a large project would do. The time grows in proportion to the number of
// servers.
func BenchmarkTrustItems(b *testing.B) {
	for _, n := range []int{500, 1000, 2000} {
		cfg := largeProject(b, n)
		b.Run(fmt.Sprintf("servers=%d", n), func(b *testing.B) {
			for b.Loop() {
				if len(trustItems(cfg, "")) < n {
					b.Fatal("servers are missing")
				}
			}
		})
	}
}
