import fs from 'fs'
fs.writeFileSync('RAN_opencode_plugin', '')
export const X = async () => ({})
