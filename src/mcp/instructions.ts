/** What a client may show its model about the server as a whole; short, since it is read before every conversation. */
export const instructions = `Longshore moves files of any size. You see handles, offsets and digests; the bytes go over HTTP, not through this conversation.
To bring a file: upload_create (with size, and sha256 if you can), run the line in commands.curl where the file is, then upload_status with waitMs 40000 until status is complete. If it was interrupted, upload_resume gives a line that goes on from the offset reached.
To get a file: file_list finds its handle, file_download gives a URL and a line to run, file_read shows up to 8192 bytes of it.
upload_write is only for small files where no command can be run.
A handle (fh_…) stands for a file everywhere; a path on your machine never does. Each result ends with nextStep: follow it. Each error says in recoveryHint, and often in repair, what to do.`;

/** The same, where the server offers tasks. */
export const instructionsWithTasks = `${instructions}
Long work is a task: the tool that starts it answers at once with a taskId, and the work goes on whatever happens to this conversation. Call durable_task_get with waitMs 40000 until it has ended; answer its questions with durable_task_respond. durable_task_list finds tasks again.`;
