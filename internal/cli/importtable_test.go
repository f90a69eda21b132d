package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSecretsOfATable checks that two different credentials of a table never get the same name.
func TestSecretsOfATable(t *testing.T) {
	m := &madeOfTable{Secrets: map[string]map[string]string{}}
	var got []string
	for _, c := range []string{"my cred", "my-cred", "my_cred", "other", "my cred"} {
		name := m.secret(c)
		got = append(got, name+" from "+m.Secrets[name]["env"])
	}
	want := []string{"my-cred from MY_CRED", "my-cred_2 from MY_CRED_2", "my_cred_3 from MY_CRED_3", "other from OTHER", "my-cred from MY_CRED"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
