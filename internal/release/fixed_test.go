package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/longtest"
)

// TestREL_fixed compares what is linked now with packaging/fixed.txt.
func TestREL_fixed(t *testing.T) {
	longtest.Skip(t)
	var said strings.Builder
	if err := reportFixed(t.Context(), "../..", &said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "none is older") {
		t.Errorf("it says %q", &said)
	}
}

// TestREL_fixedFinds has parts that are older than the list wants, newer, and gone.
func TestREL_fixedFinds(t *testing.T) {
	list := []advisory{{"go", "example.com/a", "v1.10.0", "GO-1"}, {"go", "example.com/b", "v1.10.0", "GO-2"},
		{"npm", "c", "2.0.0", "GHSA-3"}, {"npm", "d", "2.0.0", "GHSA-4"}, {"go", "c", "v1.0.0", "GO-5"}}
	parts := map[[2]string]string{{"go", "example.com/a"}: "v1.9.9", {"go", "example.com/b"}: "v1.10.0",
		{"npm", "c"}: "2.0.0-rc.1", {"npm", "d"}: "2.0.1"}
	want := []string{"example.com/a v1.9.9 has GO-1; v1.10.0 is the first version without it",
		"c 2.0.0-rc.1 has GHSA-3; 2.0.0 is the first version without it",
		"c: tenon does not contain it; remove GO-5 from packaging/fixed.txt"}
	if diff := cmp.Diff(want, vulnerable(list, parts)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCompareSemver(t *testing.T) {
	ascending := []string{"v0.0.0-20220412211240-33da011f77ad", "v0.0.0-20240606120523-5a60cdf6a761", "v0.3.8",
		"v0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0",
		"25.12.19+incompatible"}
	if !slices.IsSortedFunc(ascending, compareSemver) {
		t.Error("versions are not in their order")
	}
	for _, v := range ascending {
		if compareSemver(v, strings.TrimPrefix(v, "v")) != 0 || compareSemver(v, "v99.0.0") >= 0 {
			t.Errorf("%s is compared wrongly", v)
		}
	}
}
