/**
 * One line for a POSIX shell that creates an upload and sends a file to it; the answer is JSON with handle and sha256. The length is
 * deferred, so that the line needs to know nothing about the file: the PUT tells it.
 *
 * @param quotedFile path of the file, quoted for the shell where it needs to be. curl itself takes brackets and braces in it for a
 * pattern, unless it is told not to.
 */
export function curlUploadLine(publicUrl: string, quotedFile: string): string {
  const literally = /[[\]{}]/.test(quotedFile) ? "-g " : "";
  return (
    `curl -f ${literally}-T ${quotedFile} "$(curl -fsS -X POST ${publicUrl}/files -H 'Tus-Resumable: 1.0.0' ` +
    `-H 'Upload-Defer-Length: 1' -o /dev/null -w '%header{location}')"`
  );
}
