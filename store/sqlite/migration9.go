package sqlite

import (
	"context"
	"database/sql"
)

// migration9 gives rows checksums: see sums.go. The rows of an older store get theirs later, in batches; until then
// their table is listed in unsummed, and a missing checksum is no damage.
const migration9 = `
ALTER TABLE runs         ADD COLUMN sum INTEGER;
ALTER TABLE events       ADD COLUMN sum INTEGER;
ALTER TABLE chapters     ADD COLUMN sum INTEGER;
ALTER TABLE signals      ADD COLUMN sum INTEGER;
ALTER TABLE sessions     ADD COLUMN sum INTEGER;
ALTER TABLE grants       ADD COLUMN sum INTEGER;
ALTER TABLE grant_uses   ADD COLUMN sum INTEGER;
ALTER TABLE budgets      ADD COLUMN sum INTEGER;
ALTER TABLE reservations ADD COLUMN sum INTEGER;
ALTER TABLE results      ADD COLUMN sum INTEGER;
ALTER TABLE rates        ADD COLUMN sum INTEGER;
ALTER TABLE pins         ADD COLUMN sum INTEGER;
ALTER TABLE marks        ADD COLUMN sum INTEGER;

CREATE TABLE unsummed (name TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO unsummed (name)
	SELECT 'runs'         WHERE EXISTS (SELECT 1 FROM runs)         UNION
	SELECT 'events'       WHERE EXISTS (SELECT 1 FROM events)       UNION
	SELECT 'chapters'     WHERE EXISTS (SELECT 1 FROM chapters)     UNION
	SELECT 'signals'      WHERE EXISTS (SELECT 1 FROM signals)      UNION
	SELECT 'sessions'     WHERE EXISTS (SELECT 1 FROM sessions)     UNION
	SELECT 'grants'       WHERE EXISTS (SELECT 1 FROM grants)       UNION
	SELECT 'grant_uses'   WHERE EXISTS (SELECT 1 FROM grant_uses)   UNION
	SELECT 'budgets'      WHERE EXISTS (SELECT 1 FROM budgets)      UNION
	SELECT 'reservations' WHERE EXISTS (SELECT 1 FROM reservations) UNION
	SELECT 'results'      WHERE EXISTS (SELECT 1 FROM results)      UNION
	SELECT 'rates'        WHERE EXISTS (SELECT 1 FROM rates)        UNION
	SELECT 'pins'         WHERE EXISTS (SELECT 1 FROM pins)         UNION
	SELECT 'marks'        WHERE EXISTS (SELECT 1 FROM marks);
`

// migrateTexts9 is the part of version 9 for the index of texts, whose tables not every store has.
func migrateTexts9(ctx context.Context, conn *sql.Conn) error {
	var there bool
	if err := conn.QueryRowContext(ctx, textsThere).Scan(&there); err != nil || !there {
		return err
	}
	_, err := conn.ExecContext(ctx, `
ALTER TABLE texts      ADD COLUMN sum INTEGER;
ALTER TABLE texts_upto ADD COLUMN sum INTEGER;
INSERT INTO unsummed (name) SELECT 'texts' WHERE EXISTS (SELECT 1 FROM texts) UNION
	SELECT 'texts_upto' WHERE EXISTS (SELECT 1 FROM texts_upto);`)
	return err
}
