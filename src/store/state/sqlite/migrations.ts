/**
 * The schema of the SQLite state, as numbered steps; `PRAGMA user_version` says how many have run. A step that has been
 * released is never edited, and steps only add: a process of the version before must be able to read on until it
 * notices (at its next write) that it is too old.
 *
 * Handles, tickets and blobs are random, so an index over one of them takes a page somewhere else for each new record,
 * and pages are what a commit costs: what belongs to an upload names it by a number that rises, and so is appended.
 * Partial indices hold only the few rows that their queries look for, so that a million finished files cost them nothing.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE upload (
    id INTEGER PRIMARY KEY,
    handle TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    status TEXT NOT NULL,
    filename TEXT,
    content_type TEXT,
    metadata TEXT,
    size_bytes INTEGER,
    offset_bytes INTEGER NOT NULL,
    declared_sha256 TEXT,
    sha256 TEXT,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    lease_owner TEXT,
    lease_active INTEGER NOT NULL,
    lease_request TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    completed_at INTEGER,
    expires_at INTEGER,
    marked_at INTEGER,
    bytes_per_second REAL,
    concat TEXT NOT NULL
  ) STRICT;
  CREATE INDEX upload_listed ON upload (principal, status, created_at, handle) WHERE concat <> 'partial';
  CREATE INDEX upload_unmarked ON upload (expires_at) WHERE expires_at IS NOT NULL AND marked_at IS NULL;
  CREATE INDEX upload_marked ON upload (marked_at) WHERE marked_at IS NOT NULL;
  CREATE INDEX upload_marked_expiry ON upload (expires_at) WHERE marked_at IS NOT NULL;
  CREATE INDEX upload_leased ON upload (lease_owner) WHERE lease_active = 1;
  CREATE INDEX upload_requested ON upload (lease_owner) WHERE lease_request IS NOT NULL;
  CREATE INDEX upload_verifying ON upload (lease_owner) WHERE status = 'verifying';

  CREATE TABLE segment (
    upload_id INTEGER NOT NULL REFERENCES upload (id),
    generation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    start_bytes INTEGER NOT NULL,
    length_bytes INTEGER NOT NULL,
    blob TEXT NOT NULL,
    blob_offset INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    PRIMARY KEY (upload_id, generation, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX segment_blob ON segment (blob);

  CREATE TABLE ticket (
    hash TEXT NOT NULL PRIMARY KEY,
    upload_id INTEGER NOT NULL REFERENCES upload (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    seq INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX ticket_upload ON ticket (upload_id, kind, seq);
  CREATE INDEX ticket_expiry ON ticket (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE idempotency (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    upload_id INTEGER NOT NULL REFERENCES upload (id) ON DELETE CASCADE,
    PRIMARY KEY (principal, tool, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_upload ON idempotency (upload_id);

  CREATE TABLE garbage (
    blob TEXT NOT NULL PRIMARY KEY,
    since INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX garbage_since ON garbage (since);

  -- Rows of up to 16 KiB: with a rowid they are appended, and only names are kept in order.
  CREATE TABLE small_file (
    blob TEXT NOT NULL UNIQUE,
    bytes BLOB NOT NULL
  ) STRICT;

  CREATE TABLE usage (
    principal TEXT NOT NULL PRIMARY KEY,
    -- ANY: a sum past 2^63 becomes a float and not an error
    bytes ANY NOT NULL,
    files INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE process (
    id TEXT NOT NULL PRIMARY KEY,
    pid INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE task (
    task_id TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    progress_message TEXT,
    progress_fraction REAL,
    error TEXT,
    cancel_requested INTEGER NOT NULL,
    lease_owner TEXT,
    fence INTEGER NOT NULL,
    called INTEGER NOT NULL,
    ready_at INTEGER,
    wake_at INTEGER,
    ran_before INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    open_questions INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    expires_at INTEGER,
    deadline_at INTEGER,
    ttl_ms INTEGER NOT NULL,
    marked_at INTEGER
  ) STRICT;
  CREATE INDEX task_listed ON task (principal, status, created_at, task_id);
  CREATE INDEX task_ready ON task (kind, principal, ready_at) WHERE ready_at IS NOT NULL;
  CREATE INDEX task_wake ON task (wake_at) WHERE wake_at IS NOT NULL;
  CREATE INDEX task_leased ON task (lease_owner, called) WHERE lease_owner IS NOT NULL;
  CREATE INDEX task_unleased_deadline ON task (deadline_at)
    WHERE deadline_at IS NOT NULL AND lease_owner IS NULL AND ended_at IS NULL;
  CREATE INDEX task_unmarked ON task (expires_at) WHERE expires_at IS NOT NULL AND marked_at IS NULL;
  CREATE INDEX task_marked ON task (marked_at) WHERE marked_at IS NOT NULL;
  CREATE INDEX task_marked_expiry ON task (expires_at) WHERE marked_at IS NOT NULL;

  -- Long texts stand apart: the task's own row is rewritten with every change.
  CREATE TABLE task_payload (
    task_id TEXT NOT NULL PRIMARY KEY REFERENCES task (task_id) ON DELETE CASCADE,
    args TEXT NOT NULL,
    result TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE task_key (
    principal TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    task_id TEXT NOT NULL REFERENCES task (task_id) ON DELETE CASCADE,
    PRIMARY KEY (principal, kind, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX task_key_task ON task_key (task_id);

  CREATE TABLE step (
    task_id TEXT NOT NULL REFERENCES task (task_id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    entries INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    due_at INTEGER,
    result TEXT,
    PRIMARY KEY (task_id, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE question (
    task_id TEXT NOT NULL REFERENCES task (task_id) ON DELETE CASCADE,
    input_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    step_name TEXT NOT NULL,
    prompt TEXT NOT NULL,
    choices TEXT,
    schema TEXT,
    asked_at INTEGER NOT NULL,
    is_open INTEGER NOT NULL,
    PRIMARY KEY (task_id, input_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX question_open ON question (task_id, seq) WHERE is_open = 1;
  `,
  `
  ALTER TABLE upload ADD COLUMN upload_concat TEXT;
  `,
];

export const schemaVersion = migrations.length;
