package servers

import (
	"slices"
	"strings"
	"testing"
)

// TestSecretParts checks the judgement about names, forms and passwords within a value, and that the masked value
// contains none of them.
func TestSecretParts(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        []string
	}{
		{"API_KEY", "8f14e45fceea167a", []string{"8f14e45fceea167a"}},
		{"DB_PASSWORD2", "hunter2", []string{"hunter2"}},
		{"API_KEY_1", "hunter2", []string{"hunter2"}},
		{"DB_PASS", "hunter2", []string{"hunter2"}},
		{"dbPass", "hunter2", []string{"hunter2"}},
		{"PASSCODE", "hunter2", []string{"hunter2"}},
		{"JWT", "hunter2", []string{"hunter2"}},
		{"STRIPE_SK", "hunter2", []string{"hunter2"}},
		{"X-API-Key", "hunter2", []string{"hunter2"}},
		{"Authorization", "Bearer abcdefghi", []string{"abcdefghi"}},
		{"CITY", "ghp_0123456789abcdef0123", []string{"ghp_0123456789abcdef0123"}},
		{"DATABASE_URL", "postgres://me:hunter2@db/x", []string{"hunter2", "hunter2"}},
		{"HOME_PAGE", "https://db/x?api_key=hunter2", []string{"hunter2", "hunter2"}},
		{"REDIS_DSN", "me:hunter2@tcp(db:6379)/0", []string{"hunter2"}},
		{"CONNECTION_STRING", "Server=db;User Id=me;Password=hunter2;", []string{"hunter2"}},
		{"STORAGE", "AccountName=a;AccountKey=aGVsbG8=;X=y", []string{"aGVsbG8="}},
		{"DATABASE_URL", "postgres://db/x", nil},
		{"CITY", "Amsterdam", nil},
		{"COMPASS", "north-west", nil},
		{"BYPASS", "everything", nil},
		{"DISK", "sda-something", nil},
		{"SORT_KEY", "created_at", nil},
		{"primaryKey", "customer_id", nil},
		{"MONKEY", "capuchin", nil},
		{"USE_KEY", "true", nil},
		{"API_KEY", "${KEY}", nil},
		{"PWD", "/somewhere", nil},
		{"MAIL", "me:you@example.org", nil},
	} {
		got := SecretParts(c.value, c.name)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s=%s: %q, not %q", c.name, c.value, got, c.want)
		}
		masked := MaskValue(c.value, c.name)
		if len(c.want) == 0 && masked != c.value || len(c.want) > 0 && strings.Contains(masked, c.want[0]) {
			t.Errorf("%s=%s is shown as %s", c.name, c.value, masked)
		}
	}
	args := []string{"--api-key", "hunter2", "--token=hunter3", "API_KEY=hunter4", "X-Key: hunter5", "--dsn",
		"me:hunter6@tcp(db)/x", "--city", "Amsterdam"}
	if got := SecretArgs(args); !slices.Equal(got, []string{"hunter2", "hunter3", "hunter4", "hunter5", "hunter6"}) {
		t.Errorf("%q", got)
	}
	if text := strings.Join(MaskArgs(args), " "); strings.Contains(text, "hunter") || !strings.Contains(text, "Amsterdam") {
		t.Error(text)
	}
}

// TestMaskStart checks that a person who decides about a start sees what could run, and no secret.
func TestMaskStart(t *testing.T) {
	args := []string{"--token", "ghp_0123456789abcdef0123", "--api-key=hunter2", "--key", "./evil.sh", "--key", "$(evil)"}
	want := []string{"--token", "***", "--api-key=***", "--key", "./evil.sh", "--key", "$(evil)"}
	if got := MaskStart(args); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
