package tenon

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// ArtifactID returns the id of content block n in the result of a tool call step, for people and models, such
// as "3f9a2c-1.0-1". Its first part distinguishes the runs of a conversation.
func ArtifactID(run, step string, n int) string {
	return runTag(run) + "-" + step + "-" + strconv.Itoa(n)
}

// IsArtifactOf splits an artifact id into its step and block number. It reports whether the artifact belongs
// to the run.
func IsArtifactOf(run, id string) (step string, n int, ok bool) {
	rest, ok := strings.CutPrefix(id, runTag(run)+"-")
	step, last, found := strings.Cut(rest, "-")
	n, err := strconv.Atoi(last)
	return step, n, ok && found && err == nil && n >= 0
}

func runTag(run string) string {
	sum := sha256.Sum256([]byte(run))
	return hex.EncodeToString(sum[:3])
}
