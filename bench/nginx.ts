/** nginx as a peer: WebDAV PUT and static files, with a configuration of its own that touches nothing outside its folder. */
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

export function findNginx(): string | null {
  const places = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return places.map((place) => join(place, "nginx")).find((path) => existsSync(path)) ?? null;
}

/** @returns the path of the configuration. */
export function writeNginxConfig(port: number, dir: string): string {
  // Workers of a master that runs as root would be another user, to whom the folder is closed.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const temporary = ["proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${dir}/${name};`)
    .join(" ");
  const path = join(dir, "nginx.conf");
  writeFileSync(
    path,
    `${user}
daemon off;
worker_processes auto;
pid ${dir}/nginx.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  keepalive_requests 1000000;
  client_max_body_size 0;
  client_body_temp_path ${dir}/body;
  ${temporary}
  server {
    listen 127.0.0.1:${port};
    location / { root ${dir}/files; dav_methods PUT; create_full_put_path on; }
  }
}
`,
  );
  return path;
}
