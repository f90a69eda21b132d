package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tenonhq/tenon"
)

// maxName is the longest tool name that every provider takes (OpenAI: 64).
const maxName = 64

// name gives every tool its exposed name. fixed holds the names that the
// configuration gave; they are kept as they are, since nothing else may have
// them.
func name(tools []tenon.Tool, fixed map[int]string) {
	taken := map[string]int{} // name → number of tools that want it
	for i := range tools {
		if n, ok := fixed[i]; ok {
			tools[i].Name = n
			taken[n] += 2 // a fixed name makes every other claim to it a clash
			continue
		}
		tools[i].Name = safe(tools[i].Remote)
		taken[tools[i].Name]++
	}
	// All members of a clash get their server's name in front.
	again := map[string]int{}
	for i := range tools {
		if _, ok := fixed[i]; !ok && taken[tools[i].Name] > 1 {
			tools[i].Name = safe(tools[i].Server + "_" + tools[i].Remote)
		}
		again[tools[i].Name]++
	}
	// What still clashes, or is too long, is told apart by a hash of the
	// identity: stable from run to run, whatever else is in the list.
	for i := range tools {
		if _, ok := fixed[i]; ok {
			continue
		}
		if again[tools[i].Name] > 1 || len(tools[i].Name) > maxName {
			tools[i].Name = hashed(tools[i])
		}
	}
}

// safe replaces what a provider would refuse. It does not shorten.
func safe(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			b[i] = '-'
		}
	}
	if len(b) == 0 || b[0] == '-' || b[0] >= '0' && b[0] <= '9' {
		b = append([]byte{'_'}, b...)
	}
	return string(b)
}

func hashed(t tenon.Tool) string {
	sum := sha256.Sum256([]byte(t.Server + "\x00" + t.Remote))
	suffix := "_" + hex.EncodeToString(sum[:4])
	n := t.Name
	if len(n) > maxName-len(suffix) {
		n = strings.TrimRight(n[:maxName-len(suffix)], "-_")
	}
	return n + suffix
}
