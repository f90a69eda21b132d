-- Divides the table of events into 8 partitions by run. UNIQUE(run, seq) stays, since run is the key of the
-- partitions. Stop all processes of tenon first, make a copy with pg_dump, and use another schema's name here if
-- store.postgres.schema has one:
--
--   psql -v ON_ERROR_STOP=1 --single-transaction -f partition.sql
SET LOCAL search_path = tenon;
ALTER TABLE events RENAME TO events_whole;
ALTER INDEX events_pkey RENAME TO events_whole_pkey;
ALTER INDEX events_blob RENAME TO events_whole_blob;
CREATE TABLE events (LIKE events_whole, PRIMARY KEY (run, seq)) PARTITION BY HASH (run);
CREATE TABLE events_0 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE events_1 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE events_2 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE events_3 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE events_4 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE events_5 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE events_6 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE events_7 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 7);
INSERT INTO events SELECT * FROM events_whole;
DROP TABLE events_whole;
CREATE INDEX events_blob ON events (blob) WHERE blob IS NOT NULL;
ANALYZE events;
