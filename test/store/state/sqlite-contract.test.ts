import { transferStateContract } from "../../contract/transfer-state.ts";
import { openSqliteTwice } from "./sqlite-fixture.ts";

transferStateContract("SQLite", openSqliteTwice);
