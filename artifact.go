package tenon

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// ArtifactID names block n of what the tool call of a step gave, for people and for
// the model: "3f9a2c-1.0-1". The first part tells runs of one conversation apart.
func ArtifactID(run, step string, n int) string {
	return runTag(run) + "-" + step + "-" + strconv.Itoa(n)
}

// IsArtifactOf takes an artifact's id apart if it is one of this run.
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
