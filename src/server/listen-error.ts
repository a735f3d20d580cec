/** The address cannot be listened on; the message says what to do. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}
